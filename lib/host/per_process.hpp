// SPDX-License-Identifier: Apache-2.0
// State that belongs to one process and not to its children.
//
// A child of fork or of a raw clone gets a copy of everything its parent had in memory, locks held by threads that it
// does not have included. PerProcess gives each process its own State: what was inherited is never locked, never
// changed and never freed again, only kept reachable, and its descriptors are closed (R4, B064).
#pragma once

#include "lifecycle.hpp"

#include <atomic>
#include <cstdint>
#include <mutex>

namespace devshare::host {

// State derives from this and offers `void close_inherited() noexcept`, which closes descriptors and nothing else: it
// runs between fork and the return of fork in the child, while other threads' halves of work lie around.
template <class State>
struct ProcessState {
  std::mutex mutex;
  const std::uint32_t process = process_generation();
  State* inherited = nullptr;
};

template <class State>
class PerProcess {
 public:
  constexpr PerProcess() noexcept = default;

  // The state of this process, made at its first use. Any thread.
  State& get() {
    State* state = current_.load(std::memory_order_acquire);
    if (state != nullptr && state->process == process_generation()) [[likely]]
      return *state;
    return renew(state);
  }

  // The state of this process, or null when it has none yet.
  State* existing() noexcept {
    State* state = current_.load(std::memory_order_acquire);
    return state != nullptr && state->process == process_generation() ? state : nullptr;
  }

  void before_fork() {
    forking_ = existing();
    if (forking_ != nullptr) forking_->mutex.lock();
  }
  void after_fork_in_parent() {
    if (forking_ != nullptr) forking_->mutex.unlock();
  }
  void after_fork_in_child() {
    if (forking_ == nullptr) return;
    forking_->close_inherited();
    forking_->mutex.unlock();
  }

 private:
  State& renew(State* stale) {
    auto* fresh = new State;
    fresh->inherited = stale;
    if (current_.compare_exchange_strong(stale, fresh, std::memory_order_acq_rel)) {
      // After a raw clone no handler has run; after fork there is nothing left to close.
      if (fresh->inherited != nullptr) fresh->inherited->close_inherited();
      return *fresh;
    }
    delete fresh;
    return *stale;
  }

  std::atomic<State*> current_{nullptr};
  State* forking_ = nullptr;  // between prepare and parent or child; fork handlers run one at a time
};

}  // namespace devshare::host
