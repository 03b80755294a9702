// SPDX-License-Identifier: Apache-2.0
// What takes an offer back says so where it is called: by std::move.
// reason: write std::move(lent).revoke(grace): it ends the offer and gives the memory back
#include <devshare/lend.hpp>

using namespace devshare;

auto right(Lent<DeviceMemory> lent) { return std::move(lent).revoke(Deadline::now()); }

#ifdef DEVSHARE_BAD
void mistake_1(Lent<DeviceMemory> lent) { lent.revoke(Deadline::now()); }
#endif
#ifdef DEVSHARE_BAD
void mistake_2(Lent<Mapping>& lent) { lent.revoke(Deadline::never()); }
#endif
