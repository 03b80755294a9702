// SPDX-License-Identifier: Apache-2.0
// Whatever an importer sends: it is refused, or it is a request that is spelt exactly so.
#include "host/wire.hpp"

#include <algorithm>
#include <cstdlib>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace devshare::host;
  const std::span<const std::uint8_t> bytes(data, size);
  if (const auto request = decode_request(bytes)) {
    const RequestBytes again = encode(*request);
    if (!std::equal(bytes.begin(), bytes.end(), again.begin(), again.end())) std::abort();
  }
  return 0;
}
