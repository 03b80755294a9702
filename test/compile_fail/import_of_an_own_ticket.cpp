// SPDX-License-Identifier: Apache-2.0
// What a process issued it cannot import: the tickets of the two sides are different types.
// reason: a process cannot import what it exported
#include <devshare/imported.hpp>

using namespace devshare;

Result<ImportedMapping> right(std::span<const std::byte> message, const Device& device) {
  DEVSHARE_TRY(ticket, ReceivedTicket::decode(message));
  return ImportedMapping::open(ticket, device);
}

#if DEVSHARE_BAD == 1
void wrong(const KeyTicket& ticket) { static_cast<void>(ReceivedTicket::decode(ticket)); }
#endif
#if DEVSHARE_BAD == 2
void wrong(const KeyTicket& ticket) { static_cast<void>(ReceivedTicket::decode(ticket.bytes())); }
#endif
#if DEVSHARE_BAD == 3
void wrong(const KeyTicket& ticket, const Device& device) { ImportedMapping::open(ticket, device); }
#endif
#if DEVSHARE_BAD == 4
void wrong(const KeyTicket& ticket, const Device& device) { ImportedMapping::open(ticket.bytes(), device); }
#endif
#if DEVSHARE_BAD == 5
void wrong(const KeyTicket& ticket, const Device& device) { ImportedConstMapping::open(ticket, device); }
#endif
#if DEVSHARE_BAD == 6
void wrong(const KeyTicket& ticket, const Device& device, PeerAccess access) {
  ImportedMapping::open(ticket, device, std::move(access));
}
#endif
