// SPDX-License-Identifier: Apache-2.0
// The bytes of an own ticket are no range, so that they do not become the bytes of a received one.
// expect(gcc): no matching function for call to .*span
// expect(clang): no matching conversion for functional-style cast from .*TicketBytes
#include <devshare/ticket.hpp>

using namespace devshare;

std::span<const std::byte> right(const KeyTicket& ticket) { return {ticket.bytes().data(), ticket.bytes().size()}; }

#ifdef DEVSHARE_BAD
auto mistake(const KeyTicket& ticket) { return std::span<const std::byte>(ticket.bytes()); }
#endif
