// SPDX-License-Identifier: Apache-2.0
// Bytes off the wire are no ticket before they were looked at.
// reason: decode first: ReceivedTicket::decode(bytes)
#include <devshare/imported.hpp>

#include <array>

using namespace devshare;

Result<ImportedMapping> right(std::span<const std::byte> message, const Device& device) {
  DEVSHARE_TRY(ticket, ReceivedTicket::decode(message));
  return ImportedMapping::open(ticket, device);
}

#ifdef DEVSHARE_BAD
void mistake_1(std::span<const std::byte> message, const Device& device) { ImportedMapping::open(message, device); }
#endif
#ifdef DEVSHARE_BAD
void mistake_2(const std::array<std::byte, ticket_size>& message, const Device& device, PeerAccess access) {
  ImportedMapping::open(message, device, std::move(access));
}
#endif
