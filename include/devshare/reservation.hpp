// SPDX-License-Identifier: Apache-2.0
// AddressReservation: a range of device addresses with nothing behind it yet.
#pragma once

#include <devshare/address.hpp>
#include <devshare/detail/owned.hpp>
#include <devshare/device.hpp>
#include <devshare/physical.hpp>

#include <cstddef>

namespace devshare {

class Mapping;
class ImportedHandle;
struct ReadWrite;
template <class Access>
class BasicImportedMapping;
struct Unmapped;        // what a refused map() gives back: range and handle (mapping.hpp)
struct UnmappedImport;  // the same for an imported handle (imported_handle.hpp)

namespace detail {

// A reserved range and what is mapped in it, in the library.
struct Range;
struct ReservationValue {
  Range* range = nullptr;
  void* address = nullptr;
  std::size_t size = 0;
  std::int32_t device = -1;
};
struct ReservationPolicy {
  using Value = ReservationValue;
  DEVSHARE_API static void abandon(const Value& value) noexcept;
  static const void* identity(const Value& value) noexcept { return value.address; }
  DEVSHARE_API static Result<void> close(const Session& session, const Value& value) noexcept;
  DEVSHARE_API static void park(const Value& value, const Error& error) noexcept;
};

}  // namespace detail

// Addresses that this process has put aside. Movable, not copyable; one thread at a time. Mapping memory at its start
// turns it into a Mapping, which then owns the range and grows in it.
class DEVSHARE_CONSUMABLE [[nodiscard("the addresses are released when this object ends")]] AddressReservation {
 public:
  // `bytes` > 0, rounded up to the granularity of addresses (2 MiB). Reserve once for all that shall be contiguous.
  // Errors: invalid_argument, address_space_exhausted, unsupported_by_runtime, no_device_context, runtime_gone.
  // ACL: aclrtReserveMemAddress.
  DEVSHARE_API static Result<AddressReservation> reserve(const Device& device, std::size_t bytes) noexcept;

  // Maps the memory at the start of the range. A refusal gives both back.
  // Errors: out_of_range (the memory is larger than the range), mixed_memory (of another device), mapping_limit, closed,
  // forked, runtime_gone, refused.
  // ACL: aclrtMapMem, and aclrtMemSetAccess for memory that is not the device's own.
  DEVSHARE_API DEVSHARE_CONSUMES Result<Mapping, Refused<Unmapped>> map(DEVSHARE_CONSUMED_PARAMETER PhysicalHandle&& handle) && noexcept;
  DEVSHARE_API DEVSHARE_CONSUMES Result<BasicImportedMapping<ReadWrite>, Refused<UnmappedImport>> map(
      DEVSHARE_CONSUMED_PARAMETER ImportedHandle&& handle) && noexcept;
  template <class Handle>
  void map(Handle &&) & = delete;  // write std::move(range).map(std::move(handle)): the mapping owns both
  template <class Handle>
  void map(const Handle&) && = delete;  // write std::move(range).map(std::move(handle)): the mapping owns both

  DEVSHARE_READS std::size_t size() const noexcept { return owned_.holds() ? owned_.value().size : 0; }
  // The first address, for whoever must tell it to others. Nothing is there until it is mapped.
  DEVSHARE_READS DevicePtr<std::byte> address() const noexcept {
    return DevicePtr<std::byte>::from_address(owned_.holds() ? owned_.value().address : nullptr);
  }
  // Only of an object that was not moved from.
  DEVSHARE_READS Device device() const noexcept { return detail::device_of(owned_.session(), owned_.value().device); }

  // Releases the addresses. Refused, the range comes back. Errors: closed, forked, runtime_gone, refused.
  // ACL: aclrtReleaseMemAddress.
  DEVSHARE_API DEVSHARE_CONSUMES Result<void, Refused<AddressReservation>> close() && noexcept;
  void close() & = delete;       // write std::move(range).close(): it ends the reservation
  void close() const& = delete;  // const, or still inside a Result: make a named object of it first, then close that

  // For the library itself.
  DEVSHARE_READS const detail::Owned<detail::ReservationPolicy>& owned() const noexcept DEVSHARE_LIFETIMEBOUND {
    return owned_;
  }

 private:
  AddressReservation(const detail::Session& session, const detail::ReservationValue& value) noexcept
      : owned_(session, value) {}

  detail::Owned<detail::ReservationPolicy> owned_;
};

}  // namespace devshare
