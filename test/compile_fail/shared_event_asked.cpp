// SPDX-License-Identifier: Apache-2.0
// R49: an event for other processes is not asked whether it has happened.
// reason: an event for other processes is not asked (R49)
#include <devshare/shared_event.hpp>

using namespace devshare;

auto right(const SharedEvent& event, const StreamRef& stream) { return event.hold_up(stream); }

#ifdef DEVSHARE_BAD
void mistake_1(const SharedEvent& event) { event.happened(); }
#endif
#ifdef DEVSHARE_BAD
void mistake_2(const ImportedEvent& event) { event.happened(); }
#endif
