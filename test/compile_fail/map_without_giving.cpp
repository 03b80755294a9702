// SPDX-License-Identifier: Apache-2.0
// A mapping owns the range and the handle: both are given to it.
// reason: the mapping owns
#include <devshare/imported_handle.hpp>
#include <devshare/mapping.hpp>

using namespace devshare;

auto right(AddressReservation range, PhysicalHandle handle) { return std::move(range).map(std::move(handle)); }

#ifdef DEVSHARE_BAD
void mistake_1(AddressReservation& range, PhysicalHandle handle) { range.map(std::move(handle)); }
#endif
#ifdef DEVSHARE_BAD
void mistake_2(AddressReservation range, PhysicalHandle& handle) { std::move(range).map(handle); }
#endif
#ifdef DEVSHARE_BAD
void mistake_3(AddressReservation& range, ImportedHandle handle) { range.map(std::move(handle)); }
#endif
#ifdef DEVSHARE_BAD
void mistake_4(PhysicalHandle& handle) { Mapping::of(handle); }
#endif
#ifdef DEVSHARE_BAD
void mistake_5(Mapping& mapping, PhysicalHandle& handle) { mapping.extend(handle); }
#endif
