// SPDX-License-Identifier: Apache-2.0
// What ends an object says so where it is called: by std::move.
// reason: it ends the
#include <devshare/host_registration.hpp>
#include <devshare/imported_handle.hpp>
#include <devshare/mapping.hpp>

using namespace devshare;

auto right(PhysicalHandle handle) { return std::move(handle).close(); }

#ifdef DEVSHARE_BAD
void mistake_1(PhysicalHandle handle) { handle.close(); }
#endif
#ifdef DEVSHARE_BAD
void mistake_2(AddressReservation& range) { range.close(); }
#endif
#ifdef DEVSHARE_BAD
void mistake_3(Mapping mapping) { mapping.close(); }
#endif
#ifdef DEVSHARE_BAD
void mistake_4(ImportedHandle& handle) { handle.close(); }
#endif
#ifdef DEVSHARE_BAD
void mistake_5(HostRegistration registration) { registration.close(); }
#endif
#ifdef DEVSHARE_BAD
void mistake_6(Result<Mapping>& result) { result->close(); }
#endif
