// SPDX-License-Identifier: Apache-2.0
// What every call needs of its thread, in one place: a shared library finds a variable of the thread by a call, and one
// such call does for all of these. Without destructors, which would cost each call a guard.
#pragma once

#include "context_number.hpp"

#include <devshare/detail/cause.hpp>

#include <cstdint>

namespace devshare::host {

struct GateSlot;

struct ThreadCall {
  detail::Cause cause;       // of the refusal in the call that is running, or of the last call
  bool quiet = false;        // it was refused without a text
  GateSlot* gate = nullptr;  // of this thread and a process that may be a parent of this one
  ContextNumber context;     // the one it has chosen; it may be gone since, or be one of the parent process

  // What copy_at_hand.cpp found out of it last: the thread's current device, for as long as this is the session, no
  // context has ended since, and the gate, one of this process, is there.
  std::uint64_t device_session = 0;
  std::uint32_t contexts_ended = 0;
  std::int32_t device = -1;

  void choose(ContextNumber chosen) noexcept {
    context = chosen;
    forget_device();
  }
  void forget_device() noexcept {
    device_session = 0;
    device = -1;
  }
};

extern constinit thread_local ThreadCall this_call [[gnu::visibility("hidden")]];

// The same, found once for whoever needs it several times: a compiler that knows what it is finds it anew each time.
inline ThreadCall& find_this_call() noexcept {
  ThreadCall* found = &this_call;
  asm("" : "+r"(found));
  return *found;
}

}  // namespace devshare::host
