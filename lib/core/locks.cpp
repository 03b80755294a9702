// SPDX-License-Identifier: Apache-2.0
#include "locks.hpp"

#include "session_listeners.hpp"

#include "../host/fork.hpp"

#include <array>

#include <pthread.h>

namespace devshare::detail {
namespace {

using Locks = std::array<std::mutex, static_cast<std::size_t>(Lock::count)>;

Locks& locks() noexcept {
  static Locks* const all = new Locks;
  return *all;
}

void lock_all() {
  for (std::mutex& mutex : locks()) mutex.lock();
}

void unlock_all() {
  for (auto mutex = locks().rbegin(); mutex != locks().rend(); ++mutex) mutex->unlock();
}

void start_child() {
  runtime_after_fork_in_child();
  identity_after_fork_in_child();
  tell_forked();
  unlock_all();
}

}  // namespace

std::mutex& mutex_of(Lock lock) noexcept {
  static const int installed = [] {
    host::install_fork_handlers();  // before ours, so that fork takes ours first: they come first in every call, too
    return ::pthread_atfork(&lock_all, &unlock_all, &start_child);
  }();
  (void)installed;
  return locks()[static_cast<std::size_t>(lock)];
}

}  // namespace devshare::detail
