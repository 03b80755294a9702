// SPDX-License-Identifier: Apache-2.0
#include "call_gate.hpp"

#include "lifecycle.hpp"

#include <atomic>
#include <thread>

namespace devshare::host {
namespace {

// One for each thread that ever made a call, on a cache line of its own. Never freed: a slot whose thread ended serves
// the next new one.
struct alignas(64) Slot {
  std::atomic<std::uint32_t> depth{0};
  std::atomic<bool> taken{true};
  const std::uint32_t process = process_generation();  // a child has the slots of threads that it does not have
  Slot* next = nullptr;
};

constinit std::atomic<Slot*> slots{nullptr};
constinit std::atomic<std::uint32_t> closed{0};

constinit thread_local Slot* mine = nullptr;  // apart from ThreadEnd: no destructor, so no guard on the fast path

struct ThreadEnd {
  bool armed = false;
  ~ThreadEnd() {
    if (mine == nullptr) return;
    mine->taken.store(false, std::memory_order_release);
    mine = nullptr;
  }
};

Slot& find_slot() {
  thread_local ThreadEnd end;
  end.armed = true;
  for (Slot* slot = slots.load(std::memory_order_acquire); slot != nullptr; slot = slot->next) {
    bool free = false;
    if (slot->process != process_generation()) continue;
    if (slot->taken.compare_exchange_strong(free, true, std::memory_order_acquire)) return *slot;
  }
  auto* const slot = new Slot;
  slot->next = slots.load(std::memory_order_relaxed);
  while (!slots.compare_exchange_weak(slot->next, slot, std::memory_order_acq_rel)) {
  }
  return *slot;
}

Slot& my_slot() {
  Slot* slot = mine;
  if (slot == nullptr || slot->process != process_generation()) [[unlikely]]
    mine = slot = &find_slot();
  return *slot;
}

}  // namespace

// Store, then load, on this side; the same the other way round in close_gate. Both in one total order: either the call
// sees the gate closed, or the closer sees the call.
CallGate::CallGate() noexcept : depth_(my_slot().depth) {
  const std::uint32_t depth = depth_.load(std::memory_order_relaxed);
  if (depth != 0) {  // a call inside a call
    depth_.store(depth + 1, std::memory_order_relaxed);
    return;
  }
  for (;;) {
    depth_.store(1, std::memory_order_seq_cst);
    if (closed.load(std::memory_order_seq_cst) == 0) [[likely]]
      return;
    depth_.store(0, std::memory_order_seq_cst);
    closed.wait(1, std::memory_order_acquire);
  }
}

CallGate::~CallGate() { depth_.store(depth_.load(std::memory_order_relaxed) - 1, std::memory_order_release); }

void close_gate() noexcept {
  closed.store(1, std::memory_order_seq_cst);
  for (Slot* slot = slots.load(std::memory_order_seq_cst); slot != nullptr; slot = slot->next) {
    if (slot->process != process_generation()) continue;
    // Nobody is woken by a call that ends, which keeps calls cheap: finalizing may take a moment.
    while (slot->depth.load(std::memory_order_seq_cst) != 0) std::this_thread::yield();
  }
}

void open_gate() noexcept {
  closed.store(0, std::memory_order_seq_cst);
  closed.notify_all();
}

}  // namespace devshare::host
