// SPDX-License-Identifier: Apache-2.0
// The wire form of a ticket: docs/ticket.md has the table. Pure functions of bytes; fuzzed.
#pragma once

#include <devshare/ticket.hpp>

namespace devshare::detail {

TicketBytes encode_ticket(const TicketFields& fields) noexcept;
Result<TicketFields> decode_ticket(std::span<const std::byte> bytes) noexcept;

}  // namespace devshare::detail
