// SPDX-License-Identifier: Apache-2.0
#include "range.hpp"

#include "../core/runtime_state.hpp"

#include <devshare/detail/owned.hpp>
#include <devshare/diagnostic.hpp>

#include <new>
#include <utility>

namespace devshare {
namespace detail {
namespace {

// Of every product (facts of the driver: reservations are whole 2 MiB).
constexpr std::size_t address_granularity = std::size_t{2} << 20;

// The calls of one range, on its device.
class RangeCalls {
 public:
  RangeCalls(const Range& range, Operation operation) noexcept
      : runtime_(*range.session.record), device_(range.device), operation_(operation), current_(runtime_, device_) {}

  Error refuse(acl::Entry entry, acl::aclError code, std::size_t needed) const noexcept {
    return refusal(runtime_, operation_, entry, code, {.device = device_, .needed = needed});
  }
  Result<void> ready() const noexcept {
    if (current_.code() == 0) return {};
    return refuse(acl::Entry::aclrtSetDevice, current_.code(), 0);
  }

  Result<void> map(void* address, const HandleRecord& handle) const noexcept {
    const acl::aclError code = runtime_.table.aclrtMapMem(address, handle.physical_size, 0, handle.handle, 0);
    if (code == 0) return {};
    return refuse(acl::Entry::aclrtMapMem, code, handle.physical_size);
  }
  Result<void> give_access(void* address, const HandleRecord& handle) const noexcept {
    if (runtime_.table.aclrtMemSetAccess == nullptr) return lacking(operation_, acl::Entry::aclrtMemSetAccess);
    // The driver's own number of the device: this call does not translate (R60).
    acl::aclrtMemAccessDesc access{.flags = acl::mem_access::read_write,
                                   .location = {.id = static_cast<std::uint32_t>(driver_number(runtime_, device_)),
                                                .type = acl::mem_location_type::device},
                                   .rsv = {}};
    const acl::aclError code = runtime_.table.aclrtMemSetAccess(address, handle.physical_size, &access, 1);
    if (code == 0) return {};
    return refuse(acl::Entry::aclrtMemSetAccess, code, handle.physical_size);
  }
  Result<void> unmap(void* address, const HandleRecord& handle) const noexcept {
    const acl::aclError code = runtime_.table.aclrtUnmapMem(address);
    if (code == 0) return {};
    return refuse(acl::Entry::aclrtUnmapMem, code, handle.physical_size);
  }
  Result<void> release(const Range& range) const noexcept {
    const acl::aclError code = runtime_.table.aclrtReleaseMemAddress(range.address);
    if (code == 0) return {};
    return refuse(acl::Entry::aclrtReleaseMemAddress, code, range.reserved);
  }

 private:
  const RuntimeRecord& runtime_;
  std::int32_t device_;
  Operation operation_;
  CurrentDevice current_;
};

// Whether this runtime has the calls of a range at all.
Result<void> check_entries(const RuntimeRecord& runtime, Operation operation) noexcept {
  const acl::Table& table = runtime.table;
  if (table.aclrtReserveMemAddress == nullptr) return lacking(operation, acl::Entry::aclrtReserveMemAddress);
  if (table.aclrtReleaseMemAddress == nullptr) return lacking(operation, acl::Entry::aclrtReleaseMemAddress);
  if (table.aclrtMapMem == nullptr) return lacking(operation, acl::Entry::aclrtMapMem);
  if (table.aclrtUnmapMem == nullptr) return lacking(operation, acl::Entry::aclrtUnmapMem);
  return {};
}

}  // namespace

std::size_t Range::end() const noexcept {
  return pieces.empty() ? 0 : pieces.back().offset + pieces.back().handle->physical_size;
}

std::size_t Range::mapped() const noexcept {
  return pieces.empty() ? 0 : pieces.back().offset + pieces.back().handle->size;
}

Result<Range*> reserve_range(const Session& session, std::int32_t device, std::size_t bytes,
                             Operation operation) noexcept {
  const RuntimeRecord& runtime = *session.record;
  DEVSHARE_CHECK(check_entries(runtime, operation));
  if (bytes == 0) return Error(Errc::invalid_argument, operation, {.device = device});
  if (bytes > SIZE_MAX - address_granularity) {
    return Error(Errc::address_space_exhausted, operation, {.device = device, .needed = bytes});
  }
  bytes = (bytes + address_granularity - 1) / address_granularity * address_granularity;
  Range range{
      .session = session, .device = device, .address = nullptr, .reserved = bytes, .pieces = {}, .released = {}};
  const RangeCalls calls(range, operation);
  DEVSHARE_CHECK(calls.ready());
  void* address = nullptr;
  const acl::aclError code = runtime.table.aclrtReserveMemAddress(&address, bytes, 0, nullptr, 0);
  if (code != 0) return calls.refuse(acl::Entry::aclrtReserveMemAddress, code, bytes);
  range.address = static_cast<std::byte*>(address);
  return new Range(std::move(range));
}

Result<void> map_piece(Range& range, HandleRecord* handle, Operation operation) noexcept {
  if (handle->device != range.device) {  // R29, and only the range's own device would be given access
    return Error(Errc::mixed_memory, operation, {.device = range.device, .peer_device = handle->device});
  }
  const std::size_t offset = range.end();
  if (handle->physical_size > range.reserved - offset) {
    return Error(Errc::out_of_range, operation,
                 {.device = range.device, .needed = handle->physical_size, .available = range.reserved - offset});
  }
  const RangeCalls calls(range, operation);
  DEVSHARE_CHECK(calls.ready());
  std::byte* const address = range.address + offset;
  DEVSHARE_CHECK(calls.map(address, *handle));
  if (handle->needs_access) {
    if (auto given = calls.give_access(address, *handle); !given) {
      const Error error = given.error();
      if (auto undone = calls.unmap(address, *handle); !undone) {
        report({DiagnosticEvent::close_failed, undone.error(), address});
      }
      return error;
    }
  }
  range.pieces.push_back({handle, offset});
  return {};
}

Result<HandleRecord*> unmap_last_piece(Range& range, Operation operation) noexcept {
  const RangeCalls calls(range, operation);
  DEVSHARE_CHECK(calls.ready());
  const Piece last = range.pieces.back();
  DEVSHARE_CHECK(calls.unmap(range.address + last.offset, *last.handle));
  range.pieces.pop_back();
  return last.handle;
}

Result<void> release_range(Range* range, Operation operation) noexcept {
  {
    const RangeCalls calls(*range, operation);
    DEVSHARE_CHECK(calls.ready());
    DEVSHARE_CHECK(calls.release(*range));
  }
  delete range;
  return {};
}

void ReservationPolicy::abandon(const Value& value) noexcept { abandon_range(value.range); }

Result<void> ReservationPolicy::close(const Session&, const Value& value) noexcept {
  return release_range(value.range, Operation::release_address);
}

void ReservationPolicy::park(const Value& value, const Error& error) noexcept {
  detail::park(value.range, value.size, error);
}

}  // namespace detail

Result<AddressReservation> AddressReservation::reserve(const Device& device, std::size_t bytes) noexcept {
  constexpr Operation operation = Operation::reserve_address;
  const detail::Session& session = device.session();
  if (!session.alive()) return detail::unusable(session, operation);
  DEVSHARE_TRY(range, detail::reserve_range(session, device.number(), bytes, operation));
  return AddressReservation(session, {range, range->address, range->reserved, device.number()});
}

Result<void, Refused<AddressReservation>> AddressReservation::close() && noexcept {
  return detail::close_or_give_back(*this, owned_, Operation::release_address);
}

}  // namespace devshare
