// SPDX-License-Identifier: Apache-2.0
#include "ledger.hpp"

#include "failure.hpp"
#include "ledger_state.hpp"
#include "profile.hpp"

#include <fmt/format.h>

#include <bit>
#include <mutex>

namespace devshare::host {
namespace {

bool published_by_another(const LedgerState& self, std::int32_t from, std::int32_t to) noexcept {
  if (!self.file) return false;
  for (const StateSlot& slot : self.file.used_slots()) {
    if ((slot.reaches[at(from)].load() >> to & 1) != 0) return true;
  }
  return false;
}

acl::aclError refuse_peer_limit(std::int32_t from, std::int32_t to, std::uint64_t limit, const char* of_what) {
  return refuse(acl::code::rt_memory_allocation,
                Cause{.reason = Reason::peer_access_limit,
                      .device = from,
                      .peer_device = to,
                      .needed = limit + 1,
                      .available = limit},
                fmt::format("peer access from physical device {} to {}: {} {} have it, and that is the limit", from, to,
                            limit, of_what));
}

}  // namespace

acl::aclError ledger_grant(std::int32_t from, std::int32_t to) {
  LedgerState& self = ledger_state.get();
  const std::lock_guard guard(self.mutex);
  join(self);
  std::uint64_t& mine = self.grants[at(from)][at(to)];
  if (mine == 0) {
    const FileLock lock(self);
    if (lock.timed_out()) return refuse_locked();
    sweep_the_dead(self);
    std::uint32_t processes = 0;
    unsigned peers = 0;
    if (self.file) {
      for (const StateSlot& slot : self.file.used_slots()) {
        const unsigned bits = slot.reaches[at(from)].load();
        peers |= bits;
        processes += bits >> to & 1U;
      }
    } else {
      peers = reach_of(self, from);
    }
    const Profile& limits = profile();
    if (processes >= limits.processes_per_direction) {
      return refuse_peer_limit(from, to, limits.processes_per_direction, "processes");
    }
    if (static_cast<std::uint32_t>(std::popcount(peers | 1U << to)) > limits.peers_per_device) {
      return refuse_peer_limit(from, to, limits.peers_per_device, "devices");
    }
    mine = 1;
    publish_grants(self, from);
    return acl::code::success;
  }
  ++mine;
  return acl::code::success;
}

acl::aclError ledger_revoke(std::int32_t from, std::int32_t to) {
  LedgerState& self = ledger_state.get();
  const std::lock_guard guard(self.mutex);
  join(self);
  std::uint64_t& mine = self.grants[at(from)][at(to)];
  if (mine == 0) {
    return refuse(acl::code::rt_drv_internal,
                  Cause{.reason = Reason::peer_access_missing, .device = from, .peer_device = to},
                  fmt::format("this process has not enabled peer access from physical device {} to {}", from, to));
  }
  --mine;
  publish_grants(self, from);
  return acl::code::success;
}

bool ledger_direction_on(std::int32_t from, std::int32_t to) {
  LedgerState& self = ledger_state.get();
  const std::lock_guard guard(self.mutex);
  join(self);
  if (self.grants[at(from)][at(to)] != 0) return true;
  if (!published_by_another(self, from, to)) return false;
  const FileLock lock(self);  // by somebody: alive?
  if (!lock.timed_out()) sweep_the_dead(self);
  return published_by_another(self, from, to);
}

std::uint64_t ledger_grants_held() {
  LedgerState* self = ledger_state.existing();
  if (self == nullptr) return 0;
  const std::lock_guard guard(self->mutex);
  std::uint64_t held = 0;
  for (const auto& row : self->grants) {
    for (const std::uint64_t count : row) held += count;
  }
  return held;
}

}  // namespace devshare::host
