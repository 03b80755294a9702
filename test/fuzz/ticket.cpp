// SPDX-License-Identifier: Apache-2.0
// Whatever arrives as a ticket: it is refused, or it is a ticket that is spelt exactly so, whose slice lies in its block
// and whose payload is as long as its mechanism has it. Each input is also tried with its checksum put right, else
// nothing behind the checksum would ever be reached.
#include "sharing/ticket_codec.hpp"
#include "ticket_sum.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdlib>

namespace {

using namespace devshare;

std::size_t payload_size(Mechanism mechanism) {
  switch (mechanism) {
    case Mechanism::by_key: return 65;
    case Mechanism::v1:
    case Mechanism::v2: return 8;
    case Mechanism::fabric: return 128;
  }
  std::abort();
}

void try_ticket(std::span<const std::byte> bytes) {
  const auto fields = detail::decode_ticket(bytes);
  if (!fields) {
    const Errc kind = fields.error().kind();
    if (kind != Errc::malformed_token && kind != Errc::version_mismatch) std::abort();
    return;
  }
  const TicketBytes again = detail::encode_ticket(*fields);
  if (!std::equal(bytes.begin(), bytes.end(), again.storage.begin(), again.storage.end())) std::abort();
  const bool inside = fields->slice_offset <= fields->block_size && fields->slice_size != 0 &&
                      fields->slice_size <= fields->block_size - fields->slice_offset;
  if (!inside || fields->payload_size != payload_size(fields->mechanism)) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::span<const std::byte> bytes = std::as_bytes(std::span(data, size));
  try_ticket(bytes);
  if (size == ticket_size) try_ticket(with_right_sum(bytes));
  return 0;
}
