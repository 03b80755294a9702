// SPDX-License-Identifier: Apache-2.0
// An offer owns what it lends, so it must be given it.
// reason: (name, std::move(memory)): the offer owns what it lends
#include <devshare/lend.hpp>

using namespace devshare;

auto right(Lender& lender, DeviceMemory memory) { return lender.offer("m", std::move(memory)); }

#ifdef DEVSHARE_BAD
void mistake_1(Lender& lender, DeviceMemory& memory) { lender.offer("m", memory); }
#endif
#ifdef DEVSHARE_BAD
void mistake_2(Lender& lender, const DeviceMemory& memory) { lender.offer("m", memory); }
#endif
#ifdef DEVSHARE_BAD
void mistake_3(Lender& lender, PhysicalHandle& handle) { lender.offer("m", handle, {}); }
#endif
#ifdef DEVSHARE_BAD
void mistake_4(Lender& lender, Mapping mapping) { lender.offer("m", mapping); }
#endif
