// SPDX-License-Identifier: Apache-2.0
#include "call_gate.hpp"

#include "lifecycle.hpp"

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <utility>

namespace devshare::host {
namespace {

constinit std::atomic<GateSlot*> slots{nullptr};

struct ThreadEnd {
  bool armed = false;
  ~ThreadEnd() {
    this_call.forget_device();  // what runs later on this thread finds a slot first
    GateSlot* const slot = std::exchange(this_call.gate, nullptr);
    if (slot != nullptr) slot->taken.store(false, std::memory_order_release);
  }
};

bool membarrier(int command) noexcept { return ::syscall(SYS_membarrier, command, 0, 0) == 0; }

// Every thread of this process has passed a full barrier when this returns, wherever it was. A child of fork may have
// to ask for it anew.
void fence_all_threads() noexcept {
  if (membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED)) return;
  if (membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) && membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED)) return;
  if (membarrier(MEMBARRIER_CMD_GLOBAL)) return;  // slow, and needs no leave
  // Only a thread that was forbidden the call since the process asked for it comes here. The processors that this runs
  // on do not keep a store so long.
  std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

GateSlot& take_slot() {
  thread_local ThreadEnd end;
  end.armed = true;  // a thread_local that nobody touches is not made, nor ended
  for (GateSlot* slot = slots.load(std::memory_order_acquire); slot != nullptr; slot = slot->next) {
    bool free = false;
    if (slot->process != process_generation()) continue;
    if (slot->taken.compare_exchange_strong(free, true, std::memory_order_seq_cst)) return *slot;
  }
  auto* const slot = new GateSlot;
  slot->next = slots.load(std::memory_order_relaxed);
  while (!slots.compare_exchange_weak(slot->next, slot, std::memory_order_seq_cst)) {
  }
  return *slot;
}

}  // namespace

GateSlot& CallGate::find_slot() noexcept {
  GateSlot& slot = take_slot();
  this_call.gate = &slot;
  return slot;
}

void CallGate::wait_for_gate() noexcept {
  do {
    slot_.depth.store(0, std::memory_order_seq_cst);
    closed.wait(1, std::memory_order_acquire);
    slot_.depth.store(1, std::memory_order_seq_cst);
  } while (closed.load(std::memory_order_seq_cst) != 0);
}

void close_gate() noexcept {
  CallGate::closed.store(1, std::memory_order_seq_cst);
  if (threads_can_be_fenced.load(std::memory_order_relaxed)) fence_all_threads();
  for (GateSlot* slot = slots.load(std::memory_order_seq_cst); slot != nullptr; slot = slot->next) {
    if (slot->process != process_generation()) continue;
    // Nobody is woken by a call that ends, which keeps calls cheap: finalizing may take a moment.
    while (slot->depth.load(std::memory_order_seq_cst) != 0) std::this_thread::yield();
  }
}

void open_gate() noexcept {
  if (!threads_can_be_fenced.load(std::memory_order_relaxed) && membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED)) {
    threads_can_be_fenced.store(true, std::memory_order_relaxed);
  }
  CallGate::closed.store(0, std::memory_order_seq_cst);
  CallGate::closed.notify_all();
}

void wait_until_let_go(const void* object) noexcept {
  if (!threads_can_be_fenced.load(std::memory_order_relaxed)) return;  // then nobody holds anything
  bool fenced = false;
  for (GateSlot* slot = slots.load(std::memory_order_seq_cst); slot != nullptr; slot = slot->next) {
    if (slot->process != process_generation()) continue;
    // A thread that takes its slot after this looks at the mark after it was made.
    if (!slot->taken.load(std::memory_order_seq_cst)) continue;
    // A thread needs no fence before it looks at its own slot.
    if (slot != this_call.gate && !std::exchange(fenced, true)) fence_all_threads();
    for (const auto& held : slot->held) {
      for (int looks = 0; held.load(std::memory_order_acquire) == object; ++looks) {
        if (looks < 100) {
          std::this_thread::yield();
        } else {
          std::this_thread::sleep_for(std::chrono::microseconds(50));  // whoever holds it may need this processor
        }
      }
    }
  }
}

}  // namespace devshare::host
