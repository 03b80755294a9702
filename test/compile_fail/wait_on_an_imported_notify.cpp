// SPDX-License-Identifier: Apache-2.0
// R46: only the process that created a notify waits on it.
// reason: only the process that created a notify waits on it (R46)
#include <devshare/notify.hpp>

using namespace devshare;

auto right(const SharedNotify& notify, const StreamRef& stream) { return notify.hold_up(stream); }

#ifdef DEVSHARE_BAD
void mistake_1(const ImportedNotify& notify, const StreamRef& stream) { notify.hold_up(stream); }
#endif
