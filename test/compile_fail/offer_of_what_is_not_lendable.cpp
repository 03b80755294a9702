// SPDX-License-Identifier: Apache-2.0
// Only what this process owns and can export is lent: nothing imported, no view, nothing that is lent already.
// reason: only memory that can be exported can be lent: is_key_exportable
#include <devshare/borrow.hpp>
#include <devshare/lend.hpp>

using namespace devshare;

auto right(Lender& lender, Mapping mapping) { return lender.offer("m", std::move(mapping)); }

#ifdef DEVSHARE_BAD
void mistake_1(Lender& lender, ImportedMapping mapping) { lender.offer("m", std::move(mapping)); }
#endif
#ifdef DEVSHARE_BAD
void mistake_2(Lender& lender, Lease lease) { lender.offer("m", std::move(lease)); }
#endif
#ifdef DEVSHARE_BAD
void mistake_3(Lender& lender, Mapping& mapping) { lender.offer("m", mapping.bytes()); }
#endif
#ifdef DEVSHARE_BAD
void mistake_4(Lender& lender, SharedMemoryKey<> key) { lender.offer("m", std::move(key)); }
#endif
#ifdef DEVSHARE_BAD
void mistake_5(Lender& lender, Lent<DeviceMemory> lent) { lender.offer("m", std::move(lent)); }
#endif
#ifdef DEVSHARE_BAD
void mistake_6(Lender& lender, Result<DeviceMemory> result) { lender.offer("m", std::move(result)); }
#endif
