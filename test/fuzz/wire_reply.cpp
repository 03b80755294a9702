// SPDX-License-Identifier: Apache-2.0
// Whatever an exporter sends: it is refused, or it is a reply that is spelt exactly so and describes memory that can
// exist.
#include "host/wire.hpp"

#include <algorithm>
#include <cstdlib>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace devshare::host;
  const std::span<const std::uint8_t> bytes(data, size);
  if (const auto reply = decode_reply(bytes)) {
    const ReplyBytes again = encode(*reply);
    if (!std::equal(bytes.begin(), bytes.end(), again.begin(), again.end())) std::abort();
    if ((reply->code == 0) != (reply->reason == devshare::detail::Reason::none)) std::abort();
    const bool memory = reply->code == 0 && (reply->op == Op::import_memory || reply->op == Op::import_handle);
    if (memory && (reply->size == 0 || reply->size + reply->offset < reply->size)) std::abort();
    if (reply->code == 0 && reply->op == Op::admit) std::abort();
  }
  return 0;
}
