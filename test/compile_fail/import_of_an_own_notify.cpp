// SPDX-License-Identifier: Apache-2.0
// A ticket that this process issued is for others.
// reason: a process cannot import what it exported
#include <devshare/notify.hpp>

using namespace devshare;

auto right(const ReceivedNotifyTicket& ticket, const Device& device) { return ImportedNotify::open(ticket, device); }

#ifdef DEVSHARE_BAD
void mistake_1(const NotifyTicket& ticket, const Device& device) { ImportedNotify::open(ticket, device); }
#endif
#ifdef DEVSHARE_BAD
void mistake_2(const NotifyTicket& ticket) { ReceivedNotifyTicket::decode(ticket); }
#endif
