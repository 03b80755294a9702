// SPDX-License-Identifier: Apache-2.0
// Init and finalize, the session number, and the gate every call passes.
#pragma once

#include "process_page.hpp"

#include <devshare/acl/types.hpp>

#include <atomic>
#include <cstdint>

namespace devshare::host {

// Changes with every aclInit that starts a runtime, every aclFinalize that ends one, and fork in the child, also after
// a raw clone. Odd while initialised, and then a number that no earlier session of this process or its parents had. The
// library compares it with the number an object was made under and so knows, without a call, that its runtime is gone.
// Immortal; read it with __atomic_load_n.
const std::uint32_t* session_word() noexcept;

// True between aclInit and aclFinalize of this process (not of a forked parent).
inline bool initialised() noexcept { return (process_page().session.load(std::memory_order_acquire) & 1) != 0; }

// True in a child forked while its parent's runtime was initialised, until its own aclInit (R4).
bool in_forked_child() noexcept;

// Calls in flight hold the gate shared; aclFinalize holds it exclusively, so that no copy runs into memory that is
// being taken away. Shared costs one uncontended per-thread counter, not a lock.
class CallGate {
 public:
  CallGate() noexcept;
  ~CallGate();
  CallGate(const CallGate&) = delete;
  CallGate& operator=(const CallGate&) = delete;

 private:
  std::atomic<std::uint32_t>& depth_;
};

// Around fork, before all other modules; in the parent after them.
void lifecycle_before_fork();
void lifecycle_after_fork_in_parent();
void lifecycle_after_fork_in_child();

}  // namespace devshare::host
