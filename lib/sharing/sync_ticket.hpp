// SPDX-License-Identifier: Apache-2.0
// The wire form of the tickets of notifies and events: docs/ticket.md has the table. Pure functions of bytes.
#pragma once

#include <devshare/device.hpp>
#include <devshare/sync_ticket.hpp>

namespace devshare::detail {

std::array<std::byte, sync_ticket_size> encode_sync_ticket(SyncKind kind, const SyncTicketFields& fields) noexcept;
Result<SyncTicketFields> decode_sync_ticket(SyncKind kind, std::span<const std::byte> bytes) noexcept;

// What a ticket must be before the runtime is asked: another process's, of this machine.
Result<void> check_sync_ticket(const SyncTicketFields& fields, const Device& device, Operation operation) noexcept;

}  // namespace devshare::detail
