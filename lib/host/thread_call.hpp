// SPDX-License-Identifier: Apache-2.0
// What every call needs of its thread, in one place: a shared library finds a variable of the thread by a call, and one
// such call does for all of these. Without destructors, which would cost each call a guard.
#pragma once

#include <devshare/detail/cause.hpp>

namespace devshare::host {

struct GateSlot;

struct ThreadCall {
  detail::Cause cause;       // of the refusal in the call that is running, or of the last call
  bool quiet = false;        // it was refused without a text
  GateSlot* gate = nullptr;  // of this thread and a process that may be a parent of this one
};

extern constinit thread_local ThreadCall this_call [[gnu::visibility("hidden")]];

// The same, found once for whoever needs it several times: a compiler that sees the variable finds it anew each time.
ThreadCall& find_this_call() noexcept;

}  // namespace devshare::host
