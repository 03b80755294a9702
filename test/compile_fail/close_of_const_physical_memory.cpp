// SPDX-License-Identifier: Apache-2.0
// What is const, or still inside a Result, cannot be ended from there.
// reason: const, or still inside a Result: make a named object of it first, then close that
#include <devshare/host_registration.hpp>
#include <devshare/imported_handle.hpp>
#include <devshare/mapping.hpp>

using namespace devshare;

auto right(Mapping mapping) { return std::move(mapping).close(); }

#ifdef DEVSHARE_BAD
void mistake_1(const PhysicalHandle handle) { std::move(handle).close(); }
#endif
#ifdef DEVSHARE_BAD
void mistake_2(const AddressReservation& range) { range.close(); }
#endif
#ifdef DEVSHARE_BAD
void mistake_3(const Mapping& mapping) { mapping.close(); }
#endif
#ifdef DEVSHARE_BAD
void mistake_4(const ImportedHandle& handle) { handle.close(); }
#endif
#ifdef DEVSHARE_BAD
void mistake_5(const HostRegistration& registration) { registration.close(); }
#endif
#ifdef DEVSHARE_BAD
void mistake_6(const Result<Mapping>& result) { (*result).close(); }
#endif
