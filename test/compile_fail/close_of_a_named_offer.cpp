// SPDX-License-Identifier: Apache-2.0
// What ends an offer says so where it is called: by std::move.
// reason: write std::move(lent).close(deadline): it ends the offer and gives the memory back
#include <devshare/lend.hpp>

using namespace devshare;

auto right(Lent<DeviceMemory> lent) { return std::move(lent).close(Deadline::now()); }

#ifdef DEVSHARE_BAD
void mistake_1(Lent<DeviceMemory> lent) { lent.close(Deadline::now()); }
#endif
#ifdef DEVSHARE_BAD
void mistake_2(Lent<Mapping>& lent) { lent.close(Deadline::never()); }
#endif
