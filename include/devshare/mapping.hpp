// SPDX-License-Identifier: Apache-2.0
// Mapping: physical memory at addresses, with everything it stands on.
#pragma once

#include <devshare/address.hpp>
#include <devshare/detail/owned.hpp>
#include <devshare/device.hpp>
#include <devshare/physical.hpp>
#include <devshare/reservation.hpp>

#include <cstddef>

namespace devshare {

namespace detail {

struct MappingValue {
  Range* range = nullptr;
  void* address = nullptr;
  std::size_t size = 0;  // mapped, by what was asked for; 0: asleep
  std::size_t reserved = 0;
  std::int32_t device = -1;
};
struct MappingPolicy {
  using Value = MappingValue;
  DEVSHARE_API static void abandon(const Value& value) noexcept;
  static const void* identity(const Value& value) noexcept { return value.address; }
  DEVSHARE_API static Result<void> close(const Session& session, const Value& value) noexcept;
  static bool gone(const Value&) noexcept { return true; }  // what close() cannot end it has parked, and told
  static void park(const Value&, const Error&) noexcept {}
};
DEVSHARE_API std::size_t pieces_in(const Range& range) noexcept;
DEVSHARE_API Slice piece_of(const Range& range, std::size_t index) noexcept;

}  // namespace detail

// Memory of one or more handles in one range of addresses. It owns the range and the references: when it ends, unmap,
// release and free happen in that order. Movable, not copyable; one thread at a time. Moved from, it is empty.
//
// release_backing() gives the memory back and keeps the addresses, restore() puts new memory behind them: pointers that
// the program has handed out are good again. The bytes are not kept: copy them away before, and back after.
class DEVSHARE_CONSUMABLE [[nodiscard("the memory is unmapped and freed when this object ends")]] Mapping {
 public:
  // Reserves as much as the handle has and maps it. A refusal gives the handle back, and nothing is left of the attempt.
  // Errors: address_space_exhausted, mapping_limit, closed, forked, runtime_gone, refused.
  // ACL: aclrtReserveMemAddress, aclrtMapMem, and aclrtMemSetAccess for memory of the host.
  DEVSHARE_API static Result<Mapping, Refused<PhysicalHandle>> of(
      DEVSHARE_CONSUMED_PARAMETER PhysicalHandle&& handle) noexcept;
  static void of(const PhysicalHandle&) = delete;  // write Mapping::of(std::move(handle)): the mapping owns the handle

  // What is mapped, from the first byte on; empty while the backing is released.
  DEVSHARE_READS DeviceSpan<std::byte> bytes() & noexcept DEVSHARE_LIFETIMEBOUND { return span<std::byte>(); }
  DEVSHARE_READS DeviceSpan<const std::byte> bytes() const& noexcept DEVSHARE_LIFETIMEBOUND {
    return span<const std::byte>();
  }
  DeviceSpan<std::byte> bytes() && = delete;  // the memory ends with the temporary: keep it in a named object

  // How many handles are mapped, one behind the other, and what one of them shows: what PhysicalHandle::retain_from takes,
  // for a piece of a pool that shall be exported by itself. None while the backing is released.
  DEVSHARE_READS std::size_t pieces() const noexcept {
    return owned_.holds() ? detail::pieces_in(*owned_.value().range) : 0;
  }
  DEVSHARE_READS DeviceSpan<std::byte> piece(std::size_t index) & noexcept DEVSHARE_LIFETIMEBOUND {
    return span_of_piece<std::byte>(index);
  }
  DEVSHARE_READS DeviceSpan<const std::byte> piece(std::size_t index) const& noexcept DEVSHARE_LIFETIMEBOUND {
    return span_of_piece<const std::byte>(index);
  }
  DeviceSpan<std::byte> piece(std::size_t) && = delete;  // the memory ends with the temporary: keep it in a named object

  DEVSHARE_READS std::size_t size() const noexcept { return owned_.holds() ? owned_.value().size : 0; }
  // Bytes of the range, mapped or not: how far it can grow.
  DEVSHARE_READS std::size_t reserved() const noexcept { return owned_.holds() ? owned_.value().reserved : 0; }
  // The first address: the same for the life of the mapping, asleep or not.
  DEVSHARE_READS DevicePtr<std::byte> address() const noexcept {
    return DevicePtr<std::byte>::from_address(owned_.holds() ? owned_.value().address : nullptr);
  }
  // Only of an object that was not moved from.
  DEVSHARE_READS Device device() const noexcept { return detail::device_of(owned_.session(), owned_.value().device); }

  // The pages of the machine that it is in, where the runtime keeps it in the machine's memory: of several handles the
  // smallest pages, and populated only where all are. Unknown while it is asleep.
  DEVSHARE_READS HostBacking backing() const noexcept {
    return size() == 0 ? HostBacking{} : detail::backing_at(owned_.session(), owned_.value().address, size());
  }

  // Maps one more handle behind what is mapped. Refused, the handle comes back and the mapping is what it was.
  // Errors: out_of_range (the range has no room: reserve more), mixed_memory (of another device, R29), no_backing
  // (asleep), mapping_limit, closed, forked, runtime_gone, refused. ACL: aclrtMapMem.
  DEVSHARE_API DEVSHARE_READS Result<void, Refused<PhysicalHandle>> extend(DEVSHARE_CONSUMED_PARAMETER PhysicalHandle&& handle) & noexcept;
  void extend(const PhysicalHandle&) & = delete;  // write extend(std::move(handle)): the mapping owns the handle

  // Unmaps and frees the memory, keeps the addresses. Returns how many bytes the device really got back, by what it
  // says is free before and after: 0 while another process, or an engine's own reference, holds the memory.
  // The device's own count: what other processes do at the same moment is in it, and memory of the host is not.
  // Errors: no_backing (asleep already), in_use (a copy is running on it), closed, forked, runtime_gone, refused.
  // Refused, everything is mapped as before; or what comes before a handle that could not be freed, and bytes() shows that.
  // ACL: aclrtUnmapMem, aclrtFreePhysical.
  DEVSHARE_API DEVSHARE_READS Result<std::size_t> release_backing() & noexcept;
  // Allocates the same sizes again, in pages as were asked for at first, and maps them where they were. Fails whole: then
  // it is asleep as before. (Should a piece of the failed attempt refuse to be unmapped, it stays, bytes() shows it, and
  // the next restore() goes on there.)
  // Errors: invalid_argument (it is not asleep), out_of_memory, fd_limit, no_space, mapping_limit, closed, forked,
  // runtime_gone, refused. ACL: aclrtMallocPhysical, aclrtMapMem.
  DEVSHARE_API DEVSHARE_READS Result<void> restore() & noexcept;
  DEVSHARE_READS bool asleep() const noexcept { return owned_.holds() && size() == 0; }
  // Whether there is memory behind the addresses: a copy of bytes() while it sleeps is a copy of nothing, and succeeds.
  // Errors: no_backing (asleep), closed, forked, runtime_gone.
  DEVSHARE_API DEVSHARE_READS Result<void> check() const noexcept;

  // Unmaps, releases, frees. Where a piece cannot be unmapped (in_use: a copy is running on it), or the addresses cannot be
  // released, the mapping comes back as it was. A handle that cannot be freed after that is parked (Runtime::parked), and
  // what comes back is empty. The destructor parks whatever it cannot end.
  // Errors: closed, forked, runtime_gone, in_use, refused. ACL: aclrtUnmapMem, aclrtReleaseMemAddress,
  // aclrtFreePhysical.
  DEVSHARE_API DEVSHARE_CONSUMES Result<void, Refused<Mapping>> close() && noexcept;
  void close() & = delete;       // write std::move(mapping).close(): it ends the mapping
  void close() const& = delete;  // const, or still inside a Result: make a named object of it first, then close that

  // For the library itself.
  DEVSHARE_READS bool holds() const noexcept { return owned_.holds(); }
  DEVSHARE_READS const detail::Owned<detail::MappingPolicy>& owned() const noexcept DEVSHARE_LIFETIMEBOUND {
    return owned_;
  }

 private:
  friend class AddressReservation;
  Mapping(const detail::Session& session, const detail::MappingValue& value) noexcept : owned_(session, value) {}

  template <class T>
  DeviceSpan<T> span() const noexcept {
    if (size() == 0) return {};
    return {DevicePtr<T>::from_address(owned_.value().address), size()};
  }
  template <class T>
  DeviceSpan<T> span_of_piece(std::size_t index) const noexcept {
    if (index >= pieces()) return {};
    const Slice place = detail::piece_of(*owned_.value().range, index);
    return {DevicePtr<T>::from_address(static_cast<std::byte*>(owned_.value().address) + place.offset), place.size};
  }

  detail::Owned<detail::MappingPolicy> owned_;
};

// The two inputs of a refused AddressReservation::map.
struct Unmapped {
  AddressReservation range;
  PhysicalHandle handle;
};

}  // namespace devshare
