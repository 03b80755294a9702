// SPDX-License-Identifier: Apache-2.0
// Init and finalize, the session number, and the gate every call passes.
#pragma once

#include "process_page.hpp"
#include "thread_call.hpp"

#include <devshare/acl/types.hpp>

#include <array>
#include <atomic>
#include <cstdint>

namespace devshare::host {

// Changes with every aclInit that starts a runtime, every aclFinalize that ends one, and fork in the child, also after
// a raw clone. Odd while initialised, and then its lower half is a number that no earlier session of this process or its
// parents had; the upper half is the library's, which adds to it. The library compares the word with what it was when
// an object was made and so knows, without a call, that its runtime is gone. Immortal; only the __atomic built-ins.
std::uint64_t* session_word() noexcept;

// True between aclInit and aclFinalize of this process (not of a forked parent).
inline bool initialised() noexcept { return (process_page().session.load(std::memory_order_acquire) & 1) != 0; }

// True in a child forked while its parent's runtime was initialised, until its own aclInit (R4).
bool in_forked_child() noexcept;

// One for each thread that ever made a call, on a cache line of its own. Never freed: a slot whose thread ended serves
// the next new one.
struct alignas(64) GateSlot {
  std::atomic<std::uint32_t> depth{0};
  std::array<std::atomic<const void*>, 2> held{};  // what the thread is using: see wait_until_let_go
  std::atomic<bool> taken{true};
  const std::uint32_t process = process_generation();  // a child has the slots of threads that it does not have
  GateSlot* next = nullptr;
};

// True once the kernel lets one thread fence all others (membarrier). Then a thread may store and load without a fence
// in between, if the other side stores, fences all threads and loads: one of the two sees what the other stored.
inline constinit std::atomic<bool> threads_can_be_fenced{false};

// Calls in flight hold the gate shared; aclFinalize holds it exclusively, so that no copy runs into memory that is
// being taken away. Shared costs one uncontended per-thread counter, not a lock, and mostly no fence.
class CallGate {
 public:
  [[gnu::always_inline]] explicit CallGate(ThreadCall& thread = this_call) noexcept : slot_(slot_of(thread)) {
    const std::uint32_t depth = slot_.depth.load(std::memory_order_relaxed);
    if (depth != 0) {  // a call inside a call
      slot_.depth.store(depth + 1, std::memory_order_relaxed);
      return;
    }
    // Either the call sees the gate closed, or the closer sees the call.
    if (threads_can_be_fenced.load(std::memory_order_relaxed)) [[likely]] {
      slot_.depth.store(1, std::memory_order_relaxed);
      std::atomic_signal_fence(std::memory_order_seq_cst);
    } else {
      slot_.depth.store(1, std::memory_order_seq_cst);
    }
    if (closed.load(std::memory_order_seq_cst) != 0) [[unlikely]]
      wait_for_gate();
  }
  [[gnu::always_inline]] ~CallGate() {
    slot_.depth.store(slot_.depth.load(std::memory_order_relaxed) - 1, std::memory_order_release);
  }

  // For a copy that is no call (copy_at_hand.cpp) and counts in the depth of its slot as one: it does not wait, but leaves
  // that to the call that is made in its place.
  static bool is_closed() noexcept { return closed.load(std::memory_order_seq_cst) != 0; }

  CallGate(const CallGate&) = delete;
  CallGate& operator=(const CallGate&) = delete;

 private:
  static GateSlot& slot_of(ThreadCall& thread) noexcept {
    GateSlot* const slot = thread.gate;
    return slot != nullptr && slot->process == process_generation() ? *slot : find_slot();
  }
  static GateSlot& find_slot() noexcept;
  void wait_for_gate() noexcept;

  friend void close_gate() noexcept;
  friend void open_gate() noexcept;
  static inline constinit std::atomic<std::uint32_t> closed{0};

  GateSlot& slot_;
};

// Around fork, before all other modules; in the parent after them.
void lifecycle_before_fork();
void lifecycle_after_fork_in_parent();
void lifecycle_after_fork_in_child();

}  // namespace devshare::host
