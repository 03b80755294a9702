// SPDX-License-Identifier: Apache-2.0
// Whatever arrives as a ticket: it is refused, or it is a ticket that is spelt exactly so and whose slice lies in its
// block. Each input is also tried with its checksum put right, else nothing behind the checksum would ever be reached.
#include "sharing/ticket_codec.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <vector>

namespace {

using namespace devshare;

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
  if (!inside || fields->payload_size != acl::ipc_key_size) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::span<const std::byte> bytes = std::as_bytes(std::span(data, size));
  try_ticket(bytes);
  if (size != ticket_size) return 0;

  std::uint64_t sum = 0xcbf29ce484222325;  // as docs/ticket.md has it
  for (std::size_t i = 0; i < ticket_size - 8; i += 8) {
    std::uint64_t word = 0;
    for (std::size_t j = 0; j < 8; ++j) word |= std::uint64_t{data[i + j]} << (8 * j);
    sum = (sum ^ word) * 0x9e3779b97f4a7c15;
    sum ^= sum >> 32;
  }
  std::vector<std::byte> corrected(bytes.begin(), bytes.end());
  for (std::size_t i = 0; i < 8; ++i) corrected[ticket_size - 8 + i] = static_cast<std::byte>(sum >> (8 * i));
  try_ticket(corrected);
  return 0;
}
