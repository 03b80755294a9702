// SPDX-License-Identifier: Apache-2.0
// R14: what is admitted is a bare pid, and no other number.
// reason: a bare pid, from the importer's Runtime::bare_pid()
#include <devshare/notify.hpp>

using namespace devshare;

auto right(const SharedNotify& notify, BarePid importer) { return notify.admit(importer); }

#ifdef DEVSHARE_BAD
void mistake_1(const SharedNotify& notify, int pid) { notify.admit(pid); }
#endif
