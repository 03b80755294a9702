// SPDX-License-Identifier: Apache-2.0
// How floors above the core learn that a session is over, without the core knowing them.
#pragma once

namespace devshare::detail {

struct SessionListener {
  void (*ended)() noexcept;   // finalized, or found to be finalized by somebody else; Lock::runtime is held
  void (*forked)() noexcept;  // in a forked child, every lock held; no allocation
};

// `listener` lives for ever. Any thread, once for each; takes Lock::runtime.
void listen_to_sessions(const SessionListener& listener) noexcept;

// Called by the core, with Lock::runtime held.
void tell_session_ended() noexcept;
void tell_forked() noexcept;

}  // namespace devshare::detail
