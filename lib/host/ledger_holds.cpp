// SPDX-License-Identifier: Apache-2.0
#include "ledger.hpp"

#include "failure.hpp"
#include "ledger_state.hpp"
#include "profile.hpp"
#include "shared_claims.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <mutex>
#include <optional>

namespace devshare::host {
namespace {

// A change of several words that readers see whole: they wait while the version is odd.
class WholeChange {
 public:
  explicit WholeChange(const LedgerState& self) noexcept : slot_(slot_is_ours(self) ? own_slot(self) : nullptr) {
    if (slot_ != nullptr) slot_->version.fetch_or(1);
  }
  ~WholeChange() {
    if (slot_ != nullptr) slot_->version.store((slot_->version.load() | 1) + 1);  // even, whoever has the slot by now
  }
  WholeChange(const WholeChange&) = delete;
  WholeChange& operator=(const WholeChange&) = delete;

 private:
  StateSlot* slot_;
};

void raise_shared(LedgerState& self, std::int32_t device, std::uint64_t bytes) noexcept {
  self.file.header().shared[at(device)].fetch_add(bytes);
}

// With the file's lock held: nobody else lowers the sum meanwhile, and nobody has looked at the entries since the
// sweep.
void lower_shared(LedgerState& self, std::int32_t device, std::uint64_t bytes) noexcept {
  self.file.header().shared[at(device)].fetch_sub(bytes);
}

std::optional<OwnClaim> place_claim(LedgerState& self, const ClaimedBlock& what) {
  return place_shared_claim(self.file, &self.free_claims, self.slot, self.generation, what);
}

void settle_claim(LedgerState& self, const OwnClaim& claim) noexcept {
  const WholeChange change(self);
  settle_shared_claim(self.file, claim);
}

void end_claim(LedgerState& self, const OwnClaim& claim) {
  const WholeChange change(self);
  drop_shared_claim(self.file, &self.free_claims, claim);
}

acl::aclError refuse_table_full() {
  return refuse(acl::code::rt_resource_alloc_fail,
                Cause{.reason = Reason::key_limit, .needed = shared_claim_count + 1, .available = shared_claim_count},
                fmt::format("{} shares of physical memory are held on this machine, and that is all its state file has "
                            "room for: free some handles",
                            shared_claim_count));
}

// With the file's lock held: an entry where there was none without it, since what the dead left is free then and the
// table may grow.
acl::aclError place_claim_anyhow(LedgerState& self, const ClaimedBlock& what, std::optional<OwnClaim>* out) {
  *out = place_claim(self, what);
  if (!*out && store_more_shared_claims(self.file)) *out = place_claim(self, what);
  return *out ? acl::code::success : refuse_table_full();
}

// The rest of joining a block: when it did not fit on first sight, or there was no entry, or there is no file.
acl::aclError hold_with_lock(LedgerState& self, const ClaimedBlock& what) {
  const FileLock lock(self);
  if (lock.timed_out()) return refuse_locked();
  std::optional<OwnClaim> claim;
  if (self.file) {
    sweep_the_dead(self);
    if (settled_by_another(self.file, what.block, std::nullopt)) {
      raise_shared(self, what.device, what.bytes);
    } else if (const acl::aclError refused = decide(self, what.device, what.bytes, raise_shared, lower_shared)) {
      return refused;
    }
    if (const acl::aclError refused = place_claim_anyhow(self, what, &claim)) {
      lower_shared(self, what.device, what.bytes);
      return refused;
    }
    settle_claim(self, *claim);
  } else if (const std::uint64_t in_use = sum_claimed(self, what.device); in_use + what.bytes > profile().capacity) {
    return refuse_full(what.device, what.bytes, in_use);
  }
  self.shared.emplace(what.block, SharedBlock{.device = what.device, .bytes = what.bytes, .claim = claim});
  return acl::code::success;
}

}  // namespace

bool republish_shared(LedgerState& self) {
  if (self.shared.empty()) return true;
  for (auto& [block, held] : self.shared) {
    const ClaimedBlock what{block, held.bytes, held.device};
    held.claim = place_claim(self, what);
    if (!held.claim && store_more_shared_claims(self.file)) held.claim = place_claim(self, what);
    if (!held.claim) return false;
    raise_shared(self, held.device, held.bytes);
    settle_claim(self, *held.claim);
  }
  add_up_shared_claims(self.file);
  return true;
}

acl::aclError ledger_share(std::int32_t device, std::uint64_t block, std::uint64_t bytes) {
  LedgerState& self = ledger_state.get();
  const std::lock_guard guard(self.mutex);
  join(self);
  if (self.shared.contains(block)) return acl::code::success;
  const ClaimedBlock what{block, bytes, device};
  std::optional<OwnClaim> claim;
  if (self.file) claim = place_claim(self, what);
  if (self.file && !claim) {
    const FileLock lock(self);
    if (lock.timed_out()) return refuse_locked();
    if (self.file) {
      sweep_the_dead(self);
      if (const acl::aclError refused = place_claim_anyhow(self, what, &claim)) return refused;
    }
  }
  // Until the claim is dropped it counts twice, for those who look for room: better than not at all. Those who ask what
  // is in use see one change; who cannot wait for its end sees the block missing, and never twice.
  if (claim) raise_shared(self, device, bytes);
  {
    const WholeChange change(self);
    self.committed[at(device)] -= std::min(bytes, self.committed[at(device)]);
    publish_committed(self, device);
    if (claim) settle_shared_claim(self.file, *claim);
  }
  self.shared.emplace(block, SharedBlock{.device = device, .bytes = bytes, .claim = claim});
  drop_claim(self, device, bytes);
  return acl::code::success;
}

acl::aclError ledger_hold(std::int32_t device, std::uint64_t block, std::uint64_t bytes) {
  LedgerState& self = ledger_state.get();
  const std::lock_guard guard(self.mutex);
  join(self);
  if (const auto held = self.shared.find(block); held != self.shared.end()) {
    ++held->second.holds;
    return acl::code::success;
  }
  const ClaimedBlock what{block, bytes, device};
  const auto claim = self.file ? place_claim(self, what) : std::nullopt;
  if (!claim) return hold_with_lock(self, what);
  raise_shared(self, device, bytes);
  // Held by somebody it counts already. Else everybody who held it is gone, and it is no different from new memory.
  if (!settled_by_another(self.file, block, claim) && sum_claimed(self, device) > profile().capacity) {
    end_claim(self, *claim);
    return hold_with_lock(self, what);
  }
  settle_claim(self, *claim);
  self.shared.emplace(block, SharedBlock{.device = device, .bytes = bytes, .claim = claim});
  return acl::code::success;
}

bool ledger_let_go(std::uint64_t block) {
  LedgerState& self = ledger_state.get();
  const std::lock_guard guard(self.mutex);
  const auto held = self.shared.find(block);
  if (held == self.shared.end()) return false;
  if (--held->second.holds > 0) return true;
  if (self.file && held->second.claim) end_claim(self, *held->second.claim);
  self.shared.erase(held);
  return true;
}

}  // namespace devshare::host
