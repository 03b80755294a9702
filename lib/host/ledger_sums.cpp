// SPDX-License-Identifier: Apache-2.0
#include "ledger.hpp"

#include "ledger_state.hpp"
#include "profile.hpp"

#include <sched.h>

#include <ctime>
#include <mutex>
#include <optional>

namespace devshare::host {
namespace {

// What this process holds that others may hold too; all there is where there is no file.
std::uint64_t sum_own_shared(const LedgerState& self, std::int32_t device) noexcept {
  std::uint64_t sum = 0;
  for (const auto& [block, held] : self.shared) sum += held.device == device ? held.bytes : 0;
  return sum;
}

struct Versions {
  std::uint64_t sum = 0;  // they only grow, so equal sums mean equal versions
  bool changing = false;  // somebody is in the middle of a change
};

Versions versions_of_all(const LedgerState& self) noexcept {
  Versions all;
  for (const StateSlot& slot : self.file.used_slots()) {
    const std::uint64_t version = slot.version.load();
    all.changing = all.changing || version % 2 != 0;
    all.sum += version;
  }
  return all;
}

}  // namespace

std::uint64_t sum_claimed(const LedgerState& self, std::int32_t device) noexcept {
  if (!self.file) return self.claimed[at(device)] + sum_own_shared(self, device);
  std::uint64_t sum = 0;
  for (const StateSlot& slot : self.file.used_slots()) sum += slot.claimed[at(device)].load();
  // After the slots: a claim that becomes shared is then seen twice, or once.
  return sum + self.file.header().shared[at(device)].load();
}

void wait_a_little(int attempt) noexcept {
  if (attempt < 100) {
    ::sched_yield();
  } else {
    const timespec nap{0, 50'000};
    ::nanosleep(&nap, nullptr);
  }
}

std::uint64_t sum_committed(LedgerState& self, std::int32_t device, Sweeping sweeping) {
  if (!self.file) return self.committed[at(device)] + sum_own_shared(self, device);
  std::uint64_t sum = 0;
  std::optional<std::uint64_t> amid_a_change;
  int waited = 0;
  for (int attempt = 0; attempt < 10'000 && waited < 400; ++attempt) {
    const Versions before = versions_of_all(self);
    // In this order: what goes over from the one to the other is seen once, or not at all.
    sum = settled_shared_bytes(self.file)[at(device)];
    for (const StateSlot& slot : self.file.used_slots()) sum += slot.committed[at(device)].load();
    const bool one_moment = before.sum == versions_of_all(self).sum;
    if (!before.changing && one_moment) return sum;
    if (!before.changing) continue;
    if (one_moment) amid_a_change = sum;
    wait_a_little(waited++);
    if (sweeping == Sweeping::with_lock && waited % 16 == 0) sweep_the_dead(self);
  }
  return amid_a_change.value_or(sum);
}

std::uint64_t ledger_bytes_in_use(std::int32_t device) {
  if (device < 0 || device >= max_devices) return 0;
  (void)profile();  // read before the lock is held: reading takes a lock that comes before it
  LedgerState& self = ledger_state.get();
  const std::lock_guard guard(self.mutex);
  join(self);
  const FileLock lock(self);
  if (lock.timed_out()) return sum_committed(self, device, Sweeping::no);  // with the dead in it: an upper bound
  sweep_the_dead(self);
  return sum_committed(self, device, Sweeping::with_lock);
}

}  // namespace devshare::host
