// SPDX-License-Identifier: Apache-2.0
// Every lock of the library above the host runtime, in the one order in which they may be taken. fork takes them all
// in that order first, so that a child never inherits one in the hands of a thread that does not exist there.
//
// No lock is held while the runtime, or a hook of the user, is called (B074); `runtime` is the exception, while a
// runtime or a device is opened or ended.
#pragma once

#include <mutex>

namespace devshare::detail {

enum class Lock { runtime, imports, handles, lending, identity, diagnostics, parked, notes, count };

// Immortal. The first call installs the fork handlers.
std::mutex& mutex_of(Lock lock) noexcept;

// What the modules do in a forked child, all locks held. No allocation.
void runtime_after_fork_in_child() noexcept;
void identity_after_fork_in_child() noexcept;

}  // namespace devshare::detail
