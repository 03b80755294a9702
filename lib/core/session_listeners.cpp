// SPDX-License-Identifier: Apache-2.0
#include "session_listeners.hpp"

#include "locks.hpp"

#include <array>
#include <cassert>
#include <cstddef>

namespace devshare::detail {
namespace {

// As many as there are floors that listen. Guarded by Lock::runtime.
constinit std::array<const SessionListener*, 4> listeners{};
constinit std::size_t count = 0;

}  // namespace

void listen_to_sessions(const SessionListener& listener, std::atomic<bool>& listening) noexcept {
  if (listening.load(std::memory_order_acquire)) return;
  const std::lock_guard lock(mutex_of(Lock::runtime));
  if (listening.load(std::memory_order_relaxed)) return;
  assert(count < listeners.size());
  listeners[count++] = &listener;
  listening.store(true, std::memory_order_release);
}

void tell_session_ended() noexcept {
  for (std::size_t i = 0; i < count; ++i) listeners[i]->ended();
}

void tell_forked() noexcept {
  for (std::size_t i = 0; i < count; ++i) listeners[i]->forked();
}

}  // namespace devshare::detail
