// SPDX-License-Identifier: Apache-2.0
// The right order: what the others are wrong against, and the only one here that compiles.
#include <devshare/devshare.hpp>

using namespace devshare;

struct Peer;  // the other process, and a way to send it bytes
BarePid receive_pid(Peer&);
void send(Peer&, const TicketBytes&);
void wait_until_closed(Peer&);

Result<void> process_a(Peer& b, const Device& device) {
  DEVSHARE_TRY(memory, DeviceMemory::allocate(device, 64 << 20));
  DEVSHARE_TRY(key, export_key(std::move(memory)));
  DEVSHARE_TRY(ticket, key.admit(receive_pid(b)));
  send(b, ticket.bytes());
  wait_until_closed(b);
  DEVSHARE_TRY(back, std::move(key).close());
  return std::move(back).close();
}

Result<void> process_b(std::span<const std::byte> message, const Device& device) {
  DEVSHARE_TRY(ticket, ReceivedTicket::decode(message));
  DEVSHARE_TRY(mapping, ImportedMapping::open(ticket, device));
  DEVSHARE_CHECK(fill(device, mapping.bytes(), std::byte{1}));
  return std::move(mapping).close();
}
