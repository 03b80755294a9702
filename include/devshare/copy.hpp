// SPDX-License-Identifier: Apache-2.0
// Copies, typed by direction: the destination first, as with memcpy. Blocking: when they return, the bytes are there.
//
// `device` is the device the copy runs on: that of the memory, or the importer's own for imported memory. Memory
// imported by key from another device takes neither copies to or from the host nor blocking copies inside a device
// (R42): those are refused as cross_device_copy before the runtime is called. Kernels may use such memory freely, and
// fill() is no copy: the memory's owner carries it out.
//
// Errors of all: out_of_range (the destination is smaller than the source), cross_device_copy, exporter_gone,
// invalid_argument (not device memory of this process), no_device_context, runtime_gone. Any thread.
#pragma once

#include <devshare/address.hpp>
#include <devshare/device.hpp>

#include <cstddef>
#include <span>
#include <type_traits>

namespace devshare {

namespace detail {

// How many imports from another device this process has open: almost always 0, so that a copy pays one load for R42.
DEVSHARE_API extern std::uint32_t cross_device_imports;
[[gnu::cold]] DEVSHARE_API bool inside_cross_device_import(const void* address) noexcept;

inline bool copy_forbidden(const void* device_address) noexcept {
  return __atomic_load_n(&cross_device_imports, __ATOMIC_ACQUIRE) != 0 && inside_cross_device_import(device_address);
}

struct Copy {
  Operation operation;
  acl::aclrtMemcpyKind kind;
  void* to;
  std::size_t room;
  const void* from;
  std::size_t size;
  const void* device_address;
  const void* other_device_address;
};

// What the runtime refused, as a Result that is made where it goes.
DEVSHARE_API Result<void> copy_failed(const Device& device, Operation operation, std::size_t needed,
                                      std::size_t available, acl::aclError code) noexcept;

// The copy with everything looked at: a device that is not current, imports from another device, refusals.
[[gnu::cold]] DEVSHARE_API Result<void> copy_carefully(const Device& device, const Copy& copy) noexcept;

DEVSHARE_INLINE Result<void> copy(const Device& device, Operation operation, acl::aclrtMemcpyKind kind, void* to,
                                  std::size_t room, const void* from, std::size_t size, const void* device_address,
                                  const void* other_device_address) noexcept {
  const RuntimeRecord& record = *device.session().record;
  if (record.extras.copied_without_call != nullptr && size <= room &&
      record.extras.copied_without_call(device.session().number, device.number(), to, from, size)) [[likely]] {
    return {};
  }
  if (size > room || __atomic_load_n(&cross_device_imports, __ATOMIC_ACQUIRE) != 0 || !device.session().current() ||
      !is_current(record, device.number())) [[unlikely]] {
    return copy_carefully(device, {operation, kind, to, room, from, size, device_address, other_device_address});
  }
  const acl::aclError code = record.table.aclrtMemcpy(to, room, from, size, kind);
  if (code == 0) [[likely]] return {};
  return copy_failed(device, operation, size, room, code);
}

// Host memory that can be copied from: a contiguous range of T.
template <class Range, class T>
concept HostSource = std::is_trivially_copyable_v<T> && requires(const Range& range) {
  requires std::is_same_v<typename decltype(std::span(range))::value_type, T>;
};

// Host memory that can be copied to: a contiguous range of T that may be written and does not end with the call.
template <class Range, class T>
concept HostTarget = std::is_trivially_copyable_v<T> && requires(Range& range) {
  requires std::is_same_v<typename decltype(std::span(range))::element_type, std::remove_const_t<T>>;
  requires std::is_lvalue_reference_v<Range> || std::ranges::enable_borrowed_range<std::remove_cvref_t<Range>>;
};

}  // namespace detail

// Host to device. `from` is any contiguous range of T: an array, a vector, a span.
template <class T, class From>
  requires detail::HostSource<From, T>
DEVSHARE_INLINE Result<void> copy_to_device(const Device& device, DeviceSpan<T> to, const From& from) noexcept {
  const auto host = std::span(from);
  void* const target = to.data().address();
  return detail::copy(device, Operation::copy_to_device, acl::memcpy_kind::host_to_device, target, to.size_bytes(),
                      host.data(), host.size_bytes(), target, nullptr);
}
template <class T, class From>
void copy_to_device(const Device&, DeviceSpan<const T>, const From&) = delete;  // the device memory is read-only
template <class T, class From>
  requires(!std::is_const_v<T> && !detail::HostSource<From, T>)
void copy_to_device(const Device&, DeviceSpan<T>, const From&) = delete;  // `from` is no host range of T: as<T>()

// Device to host. `to` is any contiguous range of T that may be written and outlives the call.
template <class T, class To>
  requires detail::HostTarget<To, T>
DEVSHARE_INLINE Result<void> copy_to_host(const Device& device, To&& to, DeviceSpan<T> from) noexcept {
  const auto host = std::span(to);
  const void* const source = from.data().address();
  return detail::copy(device, Operation::copy_to_host, acl::memcpy_kind::device_to_host, host.data(), host.size_bytes(),
                      source, from.size_bytes(), source, nullptr);
}
template <class T, class To>
  requires(!detail::HostTarget<To, T>)
void copy_to_host(const Device&, To&&, DeviceSpan<T>) = delete;  // `to` is no writable host range of T, or a temporary

// Inside a device, or between two whose peer access is on.
template <class T>
  requires(std::is_trivially_copyable_v<T> && !std::is_const_v<T>)
DEVSHARE_INLINE Result<void> copy_on_device(const Device& device, DeviceSpan<T> to,
                                            std::type_identity_t<DeviceSpan<const T>> from) noexcept {
  void* const target = to.data().address();
  const void* const source = from.data().address();
  return detail::copy(device, Operation::copy_on_device, acl::memcpy_kind::device_to_device, target, to.size_bytes(),
                      source, from.size_bytes(), target, source);
}
template <class T, class From>
void copy_on_device(const Device&, DeviceSpan<const T>, const From&) = delete;  // the device memory is read-only

// Sets every byte. ACL: aclrtMemset.
DEVSHARE_API Result<void> fill(const Device& device, DeviceSpan<std::byte> to, std::byte value) noexcept;

}  // namespace devshare
