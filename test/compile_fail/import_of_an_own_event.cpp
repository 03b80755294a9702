// SPDX-License-Identifier: Apache-2.0
// A ticket that this process issued is for others.
// reason: a process cannot import what it exported
#include <devshare/shared_event.hpp>

using namespace devshare;

auto right(const ReceivedEventTicket& ticket, const Device& device) { return ImportedEvent::open(ticket, device); }

#ifdef DEVSHARE_BAD
void mistake_1(const EventTicket& ticket, const Device& device) { ImportedEvent::open(ticket, device); }
#endif
#ifdef DEVSHARE_BAD
void mistake_2(const EventTicket& ticket) { ReceivedEventTicket::decode(ticket); }
#endif
