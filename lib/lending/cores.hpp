// SPDX-License-Identifier: Apache-2.0
// Every lender and every borrower's connection of the process: what fork, and memory that was parked, must find.
#pragma once

#include "../core/locks.hpp"

#include <cstdint>
#include <mutex>

namespace devshare::detail {

// The base of a LenderCore and a BorrowerCore. Guarded by Lock::lending.
class LendingCore {
 public:
  LendingCore(const LendingCore&) = delete;
  LendingCore& operator=(const LendingCore&) = delete;

  // In a forked child: closes the child's copies of all descriptors, so that the other side hears of the parent's end.
  // No allocation, no system call but close.
  virtual void forked() noexcept = 0;

  bool of_parent = false;       // inherited by fork: never touched again, not even freed, for its locks may be held
  std::uint32_t references = 0;

 protected:
  LendingCore() noexcept = default;
  ~LendingCore() = default;
};

// The first of these installs what fork calls. Takes Lock::lending.
void register_core(LendingCore& core) noexcept;
// Under Lock::lending.
void forget_core(LendingCore& core) noexcept;

using Locked = std::unique_lock<std::mutex>;
inline Locked lock_lending() noexcept { return Locked(mutex_of(Lock::lending)); }

}  // namespace devshare::detail
