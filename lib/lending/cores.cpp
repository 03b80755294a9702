// SPDX-License-Identifier: Apache-2.0
#include "cores.hpp"

#include "../core/locks.hpp"
#include "../core/session_listeners.hpp"

#include <atomic>
#include <vector>

namespace devshare::detail {
namespace {

// Guarded by Lock::lending; immortal.
std::vector<LendingCore*>& cores() noexcept {
  static auto* const all = new std::vector<LendingCore*>;
  return *all;
}

void session_ended() noexcept {}  // what is asked of a core answers runtime_gone by itself

void forked() noexcept {
  for (LendingCore* const core : cores()) {
    if (core->of_parent) continue;
    core->of_parent = true;
    core->forked();
  }
}

}  // namespace

void register_core(LendingCore& core) noexcept {
  static constexpr SessionListener listener{&session_ended, &forked};
  static constinit std::atomic<bool> listening = false;
  listen_to_sessions(listener, listening);
  const std::lock_guard lock(mutex_of(Lock::lending));
  cores().push_back(&core);
}

void forget_core(LendingCore& core) noexcept { std::erase(cores(), &core); }

}  // namespace devshare::detail
