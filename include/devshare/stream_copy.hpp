// SPDX-License-Identifier: Apache-2.0
// The copies of devshare/copy.hpp in a stream: they are enqueued, and done when the stream has been synchronised.
//
// Both ranges stay the caller's to keep until then. Device memory that is still in a stream is not freed: the attempt is
// refused (in_use). Host memory that is not page-locked (neither of aclrtMallocHost nor registered, see HostRegistration)
// makes the call wait for its turn and its end; of memory that is, only host ranges that outlive the call are taken.
//
// An error while the copy is carried out is returned by the synchronize() that follows, not here. Memory imported by key
// from another device takes no copies to or from the host in a stream either (R42), but copies inside a device.
//
// Errors of all: out_of_range, cross_device_copy, exporter_gone, invalid_argument (not device memory of this process, or
// the stream has ended), peer_access_missing, unsupported_by_runtime, no_device_context, runtime_gone. Any thread.
#pragma once

#include <devshare/copy.hpp>
#include <devshare/stream.hpp>

namespace devshare {

namespace detail {

// ACL: aclrtMemcpyAsync.
DEVSHARE_API Result<void> enqueue_copy(const StreamRef& stream, const Copy& copy) noexcept;

// Host memory that a stream may read later: as HostSource, and no temporary.
template <class Range, class T>
concept StreamSource = HostSource<std::remove_cvref_t<Range>, T> &&
                       (std::is_lvalue_reference_v<Range> || std::ranges::enable_borrowed_range<std::remove_cvref_t<Range>>);

}  // namespace detail

// Host to device.
template <class T, class From>
  requires(detail::StreamSource<From, T> && !std::is_const_v<T>)
Result<void> copy_to_device(const StreamRef& stream, DeviceSpan<T> to, From&& from) noexcept {
  const auto host = std::span(from);
  void* const target = to.data().address();
  return detail::enqueue_copy(stream, {Operation::copy_to_device, acl::memcpy_kind::host_to_device, target,
                                       to.size_bytes(), host.data(), host.size_bytes(), target, nullptr});
}
template <class T, class From>
void copy_to_device(const StreamRef&, DeviceSpan<const T>, From&&) = delete;  // the device memory is read-only
template <class T, class From>
  requires(!std::is_const_v<T> && !detail::StreamSource<From, T>)
void copy_to_device(const StreamRef&, DeviceSpan<T>, From&&) = delete;  // `from` is no host range of T, or a temporary

// Device to host.
template <class T, class To>
  requires detail::HostTarget<To, T>
Result<void> copy_to_host(const StreamRef& stream, To&& to, DeviceSpan<T> from) noexcept {
  const auto host = std::span(to);
  const void* const source = from.data().address();
  return detail::enqueue_copy(stream, {Operation::copy_to_host, acl::memcpy_kind::device_to_host, host.data(),
                                       host.size_bytes(), source, from.size_bytes(), source, nullptr});
}
template <class T, class To>
  requires(!detail::HostTarget<To, T>)
void copy_to_host(const StreamRef&, To&&, DeviceSpan<T>) = delete;  // `to` is no writable host range of T, or a temporary

// Inside a device, or between two whose peer access is on.
template <class T>
  requires(std::is_trivially_copyable_v<T> && !std::is_const_v<T>)
Result<void> copy_on_device(const StreamRef& stream, DeviceSpan<T> to,
                            std::type_identity_t<DeviceSpan<const T>> from) noexcept {
  void* const target = to.data().address();
  const void* const source = from.data().address();
  return detail::enqueue_copy(stream, {Operation::copy_on_device, acl::memcpy_kind::device_to_device, target,
                                       to.size_bytes(), source, from.size_bytes(), target, source});
}
template <class T, class From>
void copy_on_device(const StreamRef&, DeviceSpan<const T>, const From&) = delete;  // the device memory is read-only

// Sets every byte. ACL: aclrtMemsetAsync.
DEVSHARE_API Result<void> fill(const StreamRef& stream, DeviceSpan<std::byte> to, std::byte value) noexcept;

}  // namespace devshare
