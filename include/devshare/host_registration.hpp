// SPDX-License-Identifier: Apache-2.0
// HostRegistration: host memory that a device may reach by DMA.
#pragma once

#include <devshare/address.hpp>
#include <devshare/detail/owned.hpp>
#include <devshare/device.hpp>

#include <cstddef>
#include <span>

namespace devshare {

namespace detail {

struct RegistrationValue {
  void* host = nullptr;
  void* on_device = nullptr;
  std::size_t size = 0;
  std::int32_t device = -1;
};
struct RegistrationPolicy {
  using Value = RegistrationValue;
  static void abandon(const Value&) noexcept {}
  static const void* identity(const Value& value) noexcept { return value.host; }
  DEVSHARE_API static Result<void> close(const Session& session, const Value& value) noexcept;
};

}  // namespace detail

// A range of host memory registered for a device. The memory stays the caller's and must outlive this object. Movable,
// not copyable; one thread at a time.
//
// on_device() is for kernels and for DMA engines; copies take the host address instead, as they always do.
class DEVSHARE_CONSUMABLE [[nodiscard("the memory is unregistered when this object ends")]] HostRegistration {
 public:
  // `host` begins at a page (4 KiB) and is not empty.
  // Errors: invalid_argument (null, empty, not aligned), already_registered, unsupported_by_runtime (the product, or a
  // kernel that wants the memory pinned), no_device_context, runtime_gone, refused.
  // ACL: aclrtHostRegister.
  DEVSHARE_API static Result<HostRegistration> of(const Device& device,
                                                  std::span<std::byte> host DEVSHARE_LIFETIMEBOUND) noexcept;

  DEVSHARE_READS DeviceSpan<std::byte> on_device() const& noexcept DEVSHARE_LIFETIMEBOUND {
    if (!owned_.holds()) return {};
    return {DevicePtr<std::byte>::from_address(owned_.value().on_device), owned_.value().size};
  }
  DeviceSpan<std::byte> on_device() && = delete;  // the registration ends with the temporary: keep it in a named object
  DEVSHARE_READS std::span<std::byte> host() const noexcept {
    if (!owned_.holds()) return {};
    return {static_cast<std::byte*>(owned_.value().host), owned_.value().size};
  }
  // Only of an object that was not moved from.
  DEVSHARE_READS Device device() const noexcept { return detail::device_of(owned_.session(), owned_.value().device); }

  // Refused, the registration comes back inside the error.
  // Errors: in_use (a stream copies there, on the host runtime), closed, forked, runtime_gone, refused.
  // ACL: aclrtHostUnregister.
  DEVSHARE_API DEVSHARE_CONSUMES Result<void, Refused<HostRegistration>> close() && noexcept;
  void close() & = delete;       // write std::move(registration).close(): it ends the registration
  void close() const& = delete;  // const, or still inside a Result: make a named object of it first, then close that

 private:
  HostRegistration(const detail::Session& session, const detail::RegistrationValue& value) noexcept
      : owned_(session, value) {}

  detail::Owned<detail::RegistrationPolicy> owned_;
};

}  // namespace devshare
