// SPDX-License-Identifier: Apache-2.0
// Whatever arrives as the ticket of a notify or an event: it is refused, or it is one that is spelt exactly so, and of
// one of the two kinds only.
#include "sharing/sync_ticket.hpp"
#include "ticket_sum.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdlib>

namespace {

using namespace devshare;

bool try_as(detail::SyncKind kind, std::span<const std::byte> bytes) {
  const auto fields = detail::decode_sync_ticket(kind, bytes);
  if (!fields) {
    const Errc refused = fields.error().kind();
    if (refused != Errc::malformed_token && refused != Errc::version_mismatch) std::abort();
    return false;
  }
  const auto again = detail::encode_sync_ticket(kind, *fields);
  if (!std::equal(bytes.begin(), bytes.end(), again.begin(), again.end())) std::abort();
  return true;
}

void try_both(std::span<const std::byte> bytes) {
  if (try_as(detail::SyncKind::notify, bytes) && try_as(detail::SyncKind::event, bytes)) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::span<const std::byte> bytes = std::as_bytes(std::span(data, size));
  try_both(bytes);
  if (size == sync_ticket_size) try_both(with_right_sum(bytes));
  return 0;
}
