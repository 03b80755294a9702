// SPDX-License-Identifier: Apache-2.0
// A context is a number, never a pointer to something: it carries its device and a serial that no other context of the
// process or its parents has had, so a destroyed or invented one is refused and never followed.
#pragma once

#include <devshare/acl/types.hpp>

#include <cstddef>
#include <cstdint>

namespace devshare::host {

// A device under both of its numbers: the one this process uses (after ASCEND_RT_VISIBLE_DEVICES) and the physical
// one, which is the only one that crosses a process border.
struct DeviceNumber {
  std::int32_t user = -1;
  std::int32_t physical = -1;
};

class ContextNumber {
 public:
  constexpr ContextNumber() noexcept = default;  // no context
  explicit ContextNumber(acl::aclrtContext handle) noexcept : bits_(reinterpret_cast<std::uintptr_t>(handle)) {}
  ContextNumber(std::uint64_t serial, bool primary, DeviceNumber device, std::size_t slot) noexcept
      : bits_(serial << 24 | std::uint64_t{primary} << 23 | static_cast<std::uint64_t>(device.physical) << 18 |
              static_cast<std::uint64_t>(device.user) << 13 | (slot + 1)) {}

  explicit operator bool() const noexcept { return bits_ != 0; }
  bool operator==(const ContextNumber&) const noexcept = default;
  std::uint64_t bits() const noexcept { return bits_; }
  acl::aclrtContext handle() const noexcept { return reinterpret_cast<acl::aclrtContext>(bits_); }

  bool primary() const noexcept { return (bits_ >> 23 & 1) != 0; }
  DeviceNumber device() const noexcept {
    return {static_cast<std::int32_t>(bits_ >> 13 & 31), static_cast<std::int32_t>(bits_ >> 18 & 31)};
  }
  std::size_t slot() const noexcept { return (bits_ & 0x1fff) - 1; }  // out of range for an invented number

 private:
  std::uint64_t bits_ = 0;
};

}  // namespace devshare::host
