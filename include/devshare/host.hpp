// SPDX-License-Identifier: Apache-2.0
// The host runtime, for tests and examples: its instrument (devshare/instrument.hpp) and device memory as a kernel sees
// it, for code that plays the kernel's part.
#pragma once

#include <devshare/address.hpp>
#include <devshare/instrument.hpp>
#include <devshare/result.hpp>

#include <span>
#include <type_traits>

namespace devshare {

namespace detail {

[[gnu::cold]] DEVSHARE_API Error view_refused(const Cause& why, std::size_t size) noexcept;

}  // namespace detail

namespace host {

// The bytes of a span of device memory of this process. Good until the memory is freed or the import closed; ordered
// with other processes by nothing but your own synchronisation, as kernels are by notifies and events. A view is not a
// copy: R42 does not apply to it, since kernels may use memory of another device.
// Errors: invalid_argument (not device memory of this process), out_of_range, exporter_gone, mapping_limit,
// unsupported_by_runtime (the runtime of this process is not the host runtime).
template <class T>
  requires std::is_trivially_copyable_v<T>
Result<std::span<T>> view(DeviceSpan<T> memory) noexcept {
  detail::Cause why{.reason = detail::Reason::unsupported};
  constexpr ViewAccess access = std::is_const_v<T> ? ViewAccess::read : ViewAccess::read_write;
  void* const bytes = active() ? view_of(memory.data().address(), memory.size_bytes(), access, &why) : nullptr;
  if (bytes == nullptr) [[unlikely]] return detail::view_refused(why, memory.size_bytes());
  return std::span<T>(static_cast<T*>(bytes), memory.size());
}

}  // namespace host
}  // namespace devshare
