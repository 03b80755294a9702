// SPDX-License-Identifier: Apache-2.0
// Init and finalize, the session number, and the gate every call passes.
#pragma once

#include <devshare/acl/types.hpp>

#include <cstdint>

namespace devshare::host {

// Bumped by every aclInit that starts a runtime, every aclFinalize that ends one, and by fork in the child. Odd while
// initialised. The library compares it with the number an object was made under and so knows, without a call, that
// its runtime is gone. Immortal; read it with __atomic_load_n.
const std::uint32_t* session_word() noexcept;

// True between aclInit and aclFinalize of this process (not of a forked parent).
bool initialised() noexcept;

// A counter of forks seen from this process: 0 in the first, other in a forked child, also after a raw clone. One
// load from a page that the kernel wipes in children.
std::uint32_t process_generation() noexcept;

// Calls in flight hold the gate shared; aclFinalize holds it exclusively, so that no copy runs into memory that is
// being taken away. Shared costs one uncontended per-thread counter, not a lock.
class CallGate {
 public:
  CallGate() noexcept;
  ~CallGate();
  CallGate(const CallGate&) = delete;
  CallGate& operator=(const CallGate&) = delete;
};

}  // namespace devshare::host
