// SPDX-License-Identifier: Apache-2.0
// What a process issued it cannot import: the tickets of the two sides are different types.
// reason: a process cannot import what it exported
#include <devshare/imported.hpp>

using namespace devshare;

Result<ImportedMapping> right(std::span<const std::byte> message, const Device& device) {
  DEVSHARE_TRY(ticket, ReceivedTicket::decode(message));
  return ImportedMapping::open(ticket, device);
}

#ifdef DEVSHARE_BAD
void mistake_1(const KeyTicket& ticket) { static_cast<void>(ReceivedTicket::decode(ticket)); }
#endif
#ifdef DEVSHARE_BAD
void mistake_2(const KeyTicket& ticket) { static_cast<void>(ReceivedTicket::decode(ticket.bytes())); }
#endif
#ifdef DEVSHARE_BAD
void mistake_3(const KeyTicket& ticket, const Device& device) { ImportedMapping::open(ticket, device); }
#endif
#ifdef DEVSHARE_BAD
void mistake_4(const KeyTicket& ticket, const Device& device) { ImportedMapping::open(ticket.bytes(), device); }
#endif
#ifdef DEVSHARE_BAD
void mistake_5(const KeyTicket& ticket, const Device& device) { ImportedConstMapping::open(ticket, device); }
#endif
#ifdef DEVSHARE_BAD
void mistake_6(const KeyTicket& ticket, const Device& device, PeerAccess access) {
  ImportedMapping::open(ticket, device, std::move(access));
}
#endif
