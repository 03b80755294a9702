// SPDX-License-Identifier: Apache-2.0
// The kind is in the type of export and ticket: a V1 token is no V2 token, nor is either a key (R31).
// expect(gcc): cannot convert|could not convert|no matching function|conversion from|invalid initialization of reference
// expect(clang): no viable conversion|no matching|could not bind
#include <devshare/exported.hpp>

using namespace devshare;

void send(const Ticket<v2>& ticket);
void take(ExportToken<v1> token);
void right(const Ticket<v2>& ticket) { send(ticket); }

#ifdef DEVSHARE_BAD
void mistake_1(const Ticket<v1>& ticket) { send(ticket); }
#endif
#ifdef DEVSHARE_BAD
void mistake_2(const KeyTicket& ticket) { send(ticket); }
#endif
#ifdef DEVSHARE_BAD
void mistake_3(ExportToken<v2> token) { take(std::move(token)); }
#endif
#ifdef DEVSHARE_BAD
Ticket<fabric> mistake_4(const Ticket<v2>& ticket) { return ticket; }
#endif
#ifdef DEVSHARE_BAD
void mistake_5(ExportToken<v1, Mapping, Unrestricted> token) { take(std::move(token)); }
#endif
