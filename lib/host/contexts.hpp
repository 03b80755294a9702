// SPDX-License-Identifier: Apache-2.0
// Contexts by number.
//
// A context is a number, never a pointer to something: it carries its device and a serial that no other context of the
// process has had, so a destroyed or invented one is refused and never followed. Asking whether one lives costs one
// load and no lock.
#pragma once

#include "device.hpp"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace devshare::host {

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

// The current context of the calling thread, or a refusal with 107002 (R1).
acl::aclError current_context(ContextNumber* out);

// Gives the calling thread a context, or none: for threads of the runtime that run a program's functions.
void set_thread_context(ContextNumber context) noexcept;

// The contexts of a process. alive() may be asked by any thread at any time; the others need the device module's lock.
class ContextTable {
 public:
  static constexpr std::size_t capacity = 4096;

  bool alive(ContextNumber context) const noexcept {
    return context && context.slot() < capacity &&
           slots_[context.slot()].load(std::memory_order_acquire) == context.bits();
  }
  ContextNumber make(DeviceNumber device, bool primary) noexcept {  // none when all slots are taken
    for (std::size_t slot = 0; slot < capacity; ++slot) {
      if (slots_[slot].load(std::memory_order_relaxed) != 0) continue;
      const ContextNumber made(++last_serial_, primary, device, slot);
      slots_[slot].store(made.bits(), std::memory_order_release);
      return made;
    }
    return {};
  }
  void end(ContextNumber context) noexcept {
    if (alive(context)) slots_[context.slot()].store(0, std::memory_order_release);
  }
  void end_all() noexcept {
    for (auto& slot : slots_) slot.store(0, std::memory_order_release);
  }

 private:
  std::array<std::atomic<std::uint64_t>, capacity> slots_{};
  std::uint64_t last_serial_ = 0;
};

}  // namespace devshare::host
