// SPDX-License-Identifier: Apache-2.0
// How floors above the core learn that a session is over, without the core knowing them.
#pragma once

#include <atomic>

namespace devshare::detail {

struct SessionListener {
  void (*ended)() noexcept;   // finalized, or found to be finalized by somebody else; Lock::runtime is held
  void (*forked)() noexcept;  // in a forked child, every lock held; no allocation
};

// `listener` lives for ever. Any thread, as often as one likes; the first time takes Lock::runtime. `listening` is the
// caller's, for this listener. It is no static that guards itself: a thread that waits for the lock inside such a guard
// would leave a child of fork with the guard shut for ever.
void listen_to_sessions(const SessionListener& listener, std::atomic<bool>& listening) noexcept;

// Called by the core, with Lock::runtime held.
void tell_session_ended() noexcept;
void tell_forked() noexcept;

}  // namespace devshare::detail
