// SPDX-License-Identifier: Apache-2.0
// The contexts of a process, and the one that is current. Asking whether one lives costs one load and no lock.
#pragma once

#include "context_number.hpp"
#include "device.hpp"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace devshare::host {

// The current context of the calling thread, or a refusal with 107002 (R1).
acl::aclError current_context(ContextNumber* out);

// Gives the calling thread a context, or none: for threads of the runtime that run a program's functions.
void set_thread_context(ContextNumber context) noexcept;

// How many contexts have ended in this process and its parents. In between, what is current on a thread changes by that
// thread alone.
inline constinit std::atomic<std::uint32_t> contexts_ended{0};

// The contexts of a process. alive() may be asked by any thread at any time; the others need the device module's lock.
class ContextTable {
 public:
  static constexpr std::size_t capacity = 4096;

  bool alive(ContextNumber context) const noexcept {
    return context.slot() < capacity && slots_[context.slot()].load(std::memory_order_acquire) == context.bits();
  }
  ContextNumber make(DeviceNumber device, bool primary) noexcept {  // none when all slots are taken
    for (std::size_t slot = 0; slot < capacity; ++slot) {
      if (slots_[slot].load(std::memory_order_relaxed) != 0) continue;
      const ContextNumber made(last_serial_.fetch_add(1, std::memory_order_relaxed) + 1, primary, device, slot);
      slots_[slot].store(made.bits(), std::memory_order_release);
      return made;
    }
    return {};
  }
  void end(ContextNumber context) noexcept {
    if (!alive(context)) return;
    slots_[context.slot()].store(0, std::memory_order_release);
    contexts_ended.fetch_add(1, std::memory_order_release);
  }
  void end_all() noexcept {
    for (auto& slot : slots_) slot.store(0, std::memory_order_release);
    contexts_ended.fetch_add(1, std::memory_order_release);
  }

 private:
  std::array<std::atomic<std::uint64_t>, capacity> slots_{};
  // A forked child has what its parent's threads had chosen, and counts on: none of it is ever a context of its own.
  static inline constinit std::atomic<std::uint64_t> last_serial_{0};
};

}  // namespace devshare::host
