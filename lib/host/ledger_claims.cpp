// SPDX-License-Identifier: Apache-2.0
#include "ledger.hpp"

#include "failure.hpp"
#include "ledger_state.hpp"
#include "profile.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <mutex>

namespace devshare::host {
namespace {

void add_claim(LedgerState& self, std::int32_t device, std::uint64_t bytes) noexcept {
  self.claimed[at(device)] += bytes;
  publish_claimed(self, device);
}

acl::aclError decide_under_lock(LedgerState& self, std::int32_t device, std::uint64_t bytes) {
  const FileLock lock(self);
  if (lock.timed_out()) return refuse_locked();
  return decide(self, device, bytes, add_claim, drop_claim);
}

}  // namespace

acl::aclError refuse_full(std::int32_t device, std::uint64_t bytes, std::uint64_t in_use) {
  const std::uint64_t capacity = profile().capacity;
  const std::uint64_t available = in_use < capacity ? capacity - in_use : 0;
  return refuse(acl::code::rt_memory_allocation,
                Cause{.reason = Reason::capacity, .device = device, .needed = bytes, .available = available},
                fmt::format("device memory is used up: {} bytes asked for, {} of {} free on physical device {}", bytes,
                            available, capacity, device));
}

void drop_claim(LedgerState& self, std::int32_t device, std::uint64_t bytes) noexcept {
  self.claimed[at(device)] -= std::min(bytes, self.claimed[at(device)]);
  publish_claimed(self, device);
}

acl::aclError decide(LedgerState& self, std::int32_t device, std::uint64_t bytes, ChangeClaim add, ChangeClaim drop) {
  const std::uint64_t capacity = profile().capacity;
  if (bytes > capacity) return refuse_full(device, bytes, sum_committed(self, device, Sweeping::with_lock));
  sweep_the_dead(self);
  // Claims of others that are about to be taken back must not refuse this one: only committed bytes decide at once, for
  // claims we wait a little.
  for (int attempt = 0; attempt < 200; ++attempt) {
    add(self, device, bytes);
    if (sum_claimed(self, device) <= capacity) return acl::code::success;
    drop(self, device, bytes);
    if (sum_committed(self, device, Sweeping::with_lock) > capacity - bytes) break;
    wait_a_little(attempt);
    if (self.file) add_up_shared_claims(self.file);  // what became shared or was let go meanwhile
  }
  return refuse_full(device, bytes, sum_committed(self, device, Sweeping::with_lock));
}

acl::aclError ledger_claim(std::int32_t device, std::uint64_t bytes) {
  LedgerState& self = ledger_state.get();
  const std::lock_guard guard(self.mutex);
  join(self);
  const std::uint64_t capacity = profile().capacity;
  if (bytes > capacity) return refuse_full(device, bytes, sum_committed(self, device, Sweeping::no));
  add_claim(self, device, bytes);
  if (sum_claimed(self, device) <= capacity) [[likely]]
    return acl::code::success;
  drop_claim(self, device, bytes);
  return decide_under_lock(self, device, bytes);
}

void ledger_commit(std::int32_t device, std::uint64_t bytes) {
  LedgerState& self = ledger_state.get();
  const std::lock_guard guard(self.mutex);
  join(self);
  self.committed[at(device)] += bytes;
  publish_committed(self, device);
}

void ledger_take_back(std::int32_t device, std::uint64_t bytes) {
  LedgerState& self = ledger_state.get();
  const std::lock_guard guard(self.mutex);
  join(self);
  drop_claim(self, device, bytes);
}

void ledger_release(std::int32_t device, std::uint64_t bytes) {
  LedgerState& self = ledger_state.get();
  const std::lock_guard guard(self.mutex);
  join(self);
  self.committed[at(device)] -= std::min(bytes, self.committed[at(device)]);
  publish_committed(self, device);
  drop_claim(self, device, bytes);  // after it: whoever fits into the room that this makes, commits after us
}

}  // namespace devshare::host
