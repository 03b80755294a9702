// SPDX-License-Identifier: Apache-2.0
// The wire form of a notify ticket: docs/ticket.md has the table. Pure functions of bytes.
#pragma once

#include <devshare/notify.hpp>

namespace devshare::detail {

std::array<std::byte, notify_ticket_size> encode_notify_ticket(const NotifyTicketFields& fields) noexcept;
Result<NotifyTicketFields> decode_notify_ticket(std::span<const std::byte> bytes) noexcept;

}  // namespace devshare::detail
