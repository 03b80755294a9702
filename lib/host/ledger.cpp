// SPDX-License-Identifier: Apache-2.0
#include "ledger.hpp"

#include "failure.hpp"
#include "fork.hpp"
#include "per_process.hpp"
#include "profile.hpp"
#include "shared_claims.hpp"
#include "state_file.hpp"

#include <fmt/format.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <ctime>
#include <mutex>
#include <optional>
#include <system_error>
#include <unordered_map>

namespace devshare::host {
namespace {

static_assert(max_devices == static_cast<std::int32_t>(state_devices));

constexpr std::size_t no_slot = slot_count;

// A block that this process holds together with others, or may.
struct SharedBlock {
  std::int32_t device = -1;
  std::uint64_t bytes = 0;
  std::uint64_t holds = 1;
  std::optional<OwnClaim> claim{};  // its entry in the table, where there is one
};

struct State : ProcessState<State> {
  // What this process has, whatever becomes of its slot; the slot is where others read it.
  std::array<std::uint64_t, state_devices> claimed{};
  std::array<std::uint64_t, state_devices> committed{};
  std::array<std::array<std::uint64_t, state_devices>, state_devices> grants{};
  std::unordered_map<std::uint64_t, SharedBlock> shared;

  bool joined = false;  // whether the file was looked for since the start of the session
  StateFile file;       // not open: the scope is this process
  std::size_t slot = no_slot;
  std::uint64_t generation = 0;  // of the slot while it is ours
  FreeClaims free_claims;        // in the table of the file
  std::string note;

  void close_inherited() noexcept { file.close_descriptors(); }
};

PerProcess<State> ledger;

std::size_t at(std::int32_t device) noexcept { return static_cast<std::size_t>(device); }

// The number of a machine: processes that play different ones have nothing to share.
std::uint64_t machine_number(const Profile& profile) noexcept {
  std::uint64_t hash = 0xcbf29ce484222325U;  // FNV-1a
  const auto mix = [&hash](std::uint64_t value) {
    for (int byte = 0; byte < 8; ++byte) {
      hash = (hash ^ (value >> (8 * byte) & 0xff)) * 0x100000001b3U;
    }
  };
  mix(state_layout_number);
  mix(sizeof(StateSlot));
  mix(slot_count);
  mix(sizeof(SharedClaim));
  mix(shared_claim_count);
  mix(profile.server);
  mix(static_cast<std::uint64_t>(profile.product));
  mix(static_cast<std::uint64_t>(profile.device_count));
  mix(profile.capacity);
  for (const std::uint8_t reachable : profile.peers) mix(reachable);
  return hash != 0 ? hash : 1;
}

// --- this process's slot ---

StateSlot* own_slot(const State& self) noexcept {
  return self.file && self.slot != no_slot ? &self.file.slot(self.slot) : nullptr;
}

bool slot_is_ours(const State& self) noexcept {
  const StateSlot* slot = own_slot(self);
  return slot != nullptr && slot->generation.load() == self.generation;
}

void publish_claimed(const State& self, std::int32_t device) noexcept {
  if (StateSlot* slot = own_slot(self)) slot->claimed[at(device)].store(self.claimed[at(device)]);
}

// The version goes first: a reader that sees none change while it adds up has read one moment of all slots. Two changes
// of which one made room for the other cannot both slip through, since the second claims, and so bumps, after the
// first.
void publish_committed(const State& self, std::int32_t device) noexcept {
  StateSlot* slot = own_slot(self);
  if (slot == nullptr) return;
  slot->version.fetch_add(2);  // an odd one stays odd
  slot->committed[at(device)].store(self.committed[at(device)]);
}

// A change of several words that readers see whole: they wait while the version is odd.
class WholeChange {
 public:
  explicit WholeChange(const State& self) noexcept : slot_(slot_is_ours(self) ? own_slot(self) : nullptr) {
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

// A bit for each device to which this process holds the direction on.
std::uint16_t reach_of(const State& self, std::int32_t from) noexcept {
  unsigned bits = 0;
  for (std::size_t to = 0; to < state_devices; ++to) bits |= self.grants[at(from)][to] != 0 ? 1U << to : 0U;
  return static_cast<std::uint16_t>(bits);
}

void publish_grants(const State& self, std::int32_t from) noexcept {
  if (StateSlot* slot = own_slot(self)) slot->reaches[at(from)].store(reach_of(self, from));
}

void leave_file(State& self) {
  self.file = StateFile();
  self.slot = no_slot;
  self.free_claims = {};
}

void work_alone(State& self, std::string why) {
  leave_file(self);
  self.note = std::move(why);
}

// --- what is shared: entries in the table ---

void raise_shared(State& self, std::int32_t device, std::uint64_t bytes) noexcept {
  self.file.header().shared[at(device)].fetch_add(bytes);
}

std::optional<OwnClaim> place_claim(State& self, const ClaimedBlock& what) {
  return place_shared_claim(self.file, &self.free_claims, self.slot, self.generation, what);
}

void settle_claim(State& self, const OwnClaim& claim) noexcept {
  const WholeChange change(self);
  settle_shared_claim(self.file, claim);
}

void end_claim(State& self, const OwnClaim& claim) {
  const WholeChange change(self);
  drop_shared_claim(self.file, &self.free_claims, claim);
}

// With the file's lock held, in a new slot: what the old one said of shared blocks went with it.
bool republish_shared(State& self) {
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

// With the file's lock held.
bool has_file_to_itself(const State& self) noexcept {
  const auto slots = self.file.used_slots();
  for (std::size_t index = 0; index < slots.size(); ++index) {
    if (index != self.slot && slots[index].pid.load() != 0 && self.file.slot_held_by_other(index)) return false;
  }
  return true;
}

// With the file's lock held: takes the first free slot and writes into it what this process has.
void take_a_slot(State& self) {
  const std::size_t used = self.file.used_slots().size();
  for (std::size_t index = 0; index < slot_count; ++index) {
    if (index < used && self.file.slot(index).pid.load() != 0 && self.file.slot_held_by_other(index)) continue;
    if (index >= used && !self.file.reserve(index + 1)) {
      return work_alone(self, fmt::format("no space for the state file: {}", std::generic_category().message(errno)));
    }
    StateSlot& slot = self.file.slot(index);
    slot.clear();  // before it is locked: whoever reads a locked slot reads its owner's values
    if (!self.file.take_slot(index)) continue;
    self.slot = index;
    self.generation = slot.generation.load();
    slot.pid.store(::getpid());
    for (std::int32_t device = 0; device < max_devices; ++device) {
      publish_claimed(self, device);
      publish_committed(self, device);
      publish_grants(self, device);
    }
    if (index >= used) self.file.header().high_water.store(static_cast<std::uint32_t>(index + 1));
    if (has_file_to_itself(self)) clear_shared_claims(self.file);
    if (!republish_shared(self)) work_alone(self, "the table of shared memory in the state file is full");
    return;
  }
  work_alone(self, fmt::format("{} processes share the state file, and that is all it has room for", slot_count));
}

// --- the lock of the file ---

enum class Held { yes, alone, no };

// Takes the file's lock with this process's slot made sure of. A slot, or the whole file, is lost when the program
// closes all its descriptors, or somebody deletes the file: it is joined anew. `alone`: there is no file.
Held lock_file(State& self) {
  const Profile& machine = profile();
  for (int attempt = 0; self.file && attempt < 8; ++attempt) {
    if (self.file.intact()) {
      if (!self.file.lock(machine.exporter_deadline_ms)) return Held::no;
      if (self.file.named()) {
        if (!slot_is_ours(self) || !self.file.take_slot(self.slot)) take_a_slot(self);
        return self.file ? Held::yes : Held::alone;
      }
    }
    // Closed before anything is opened again: closing any descriptor of the file drops the locks of all, and a number
    // of ours that the program has closed could be given to the new directory, which looks like the old one.
    leave_file(self);
    std::string refused;
    StateDirectory directory = open_state_directory(machine.state_directory);
    if (!directory.descriptor) {
      work_alone(self, std::move(directory.refused));
      break;
    }
    self.file = StateFile::open(std::move(directory), machine_number(machine), machine.exporter_deadline_ms, &refused);
    if (!self.file) {
      work_alone(self, refused.empty() ? "the lock of the state file is held by a process that does not run" : refused);
    }
  }
  return self.file ? Held::no : Held::alone;
}

class FileLock {
 public:
  explicit FileLock(State& self) : self_(self), held_(lock_file(self)) {}
  ~FileLock() {
    if (held_ == Held::yes && self_.file) self_.file.unlock();
  }
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;

  bool timed_out() const noexcept { return held_ == Held::no; }

 private:
  State& self_;
  Held held_;
};

void join(State& self) {
  if (!self.joined) {
    self.joined = true;
    self.note.clear();
    const Profile& machine = profile();
    StateDirectory directory = open_state_directory(machine.state_directory);
    if (!directory.descriptor) return work_alone(self, std::move(directory.refused));
    std::string refused;
    self.file = StateFile::open(std::move(directory), machine_number(machine), machine.exporter_deadline_ms, &refused);
    if (!self.file) {
      return work_alone(self, refused.empty() ? "the lock of the state file is held by a process that does not run"
                                              : std::move(refused));
    }
  }
  if (self.file && !slot_is_ours(self)) {
    const FileLock lock(self);
    if (lock.timed_out()) work_alone(self, "the lock of the state file is held by a process that does not run");
  }
}

// With the file's lock held.
void sweep_the_dead(State& self) {
  if (!self.file) return;
  const auto slots = self.file.used_slots();
  for (std::size_t index = 0; index < slots.size(); ++index) {
    if (index == self.slot || slots[index].pid.load() == 0) continue;
    if (!self.file.slot_held_by_other(index)) slots[index].clear();
  }
  add_up_shared_claims(self.file);
}

// --- sums over all slots ---

// What this process holds that others may hold too; all there is where there is no file.
std::uint64_t sum_own_shared(const State& self, std::int32_t device) noexcept {
  std::uint64_t sum = 0;
  for (const auto& [block, held] : self.shared) sum += held.device == device ? held.bytes : 0;
  return sum;
}

std::uint64_t sum_claimed(const State& self, std::int32_t device) noexcept {
  if (!self.file) return self.claimed[at(device)] + sum_own_shared(self, device);
  std::uint64_t sum = 0;
  for (const StateSlot& slot : self.file.used_slots()) sum += slot.claimed[at(device)].load();
  // After the slots: a claim that becomes shared is then seen twice, or once.
  return sum + self.file.header().shared[at(device)].load();
}

// For somebody who is in the middle of something and may have lost his processor.
void wait_a_little(int attempt) noexcept {
  if (attempt < 100) {
    ::sched_yield();
  } else {
    const timespec nap{0, 50'000};
    ::nanosleep(&nap, nullptr);
  }
}

// Of all slots; none while one of them is in the middle of a change.
std::optional<std::uint64_t> sum_versions(const State& self) noexcept {
  std::uint64_t sum = 0;
  bool changing = false;
  for (const StateSlot& slot : self.file.used_slots()) {
    const std::uint64_t version = slot.version.load();
    changing = changing || version % 2 != 0;
    sum += version;
  }
  return changing ? std::nullopt : std::optional(sum);
}

// One moment of all slots and of the table; or, when they change faster than they can be read or somebody was stopped
// in the middle of a change, the last sum. Who was killed in the middle of one is swept away, where the lock is held.
enum class Sweeping : bool { no, with_lock };
std::uint64_t sum_committed(State& self, std::int32_t device, Sweeping sweeping) {
  if (!self.file) return self.committed[at(device)] + sum_own_shared(self, device);
  std::uint64_t sum = 0;
  int waited = 0;
  for (int attempt = 0; attempt < 10'000 && waited < 400; ++attempt) {
    const auto before = sum_versions(self);
    sum = settled_shared_bytes(self.file)[at(device)];
    for (const StateSlot& slot : self.file.used_slots()) sum += slot.committed[at(device)].load();
    if (before && before == sum_versions(self)) break;  // versions only grow, so equal sums mean equal versions
    if (before) continue;
    wait_a_little(waited++);
    if (sweeping == Sweeping::with_lock && waited % 16 == 0) sweep_the_dead(self);
  }
  return sum;
}

acl::aclError refuse_full(std::int32_t device, std::uint64_t bytes, std::uint64_t in_use) {
  const std::uint64_t capacity = profile().capacity;
  const std::uint64_t available = in_use < capacity ? capacity - in_use : 0;
  return refuse(acl::code::rt_memory_allocation,
                Cause{.reason = Reason::capacity, .device = device, .needed = bytes, .available = available},
                fmt::format("device memory is used up: {} bytes asked for, {} of {} free on physical device {}", bytes,
                            available, capacity, device));
}

acl::aclError refuse_locked() {
  return refuse(acl::code::rt_memory_allocation, Reason::timed_out,
                "the lock of the state file is held by a process that does not run (stopped?)");
}

void add_claim(State& self, std::int32_t device, std::uint64_t bytes) noexcept {
  self.claimed[at(device)] += bytes;
  publish_claimed(self, device);
}

void drop_claim(State& self, std::int32_t device, std::uint64_t bytes) noexcept {
  self.claimed[at(device)] -= std::min(bytes, self.claimed[at(device)]);
  publish_claimed(self, device);
}

// The rest of a claim that did not fit on first sight, with the file's lock held. `add` and `drop` make it and take it
// back.
template <class Add, class Drop>
acl::aclError decide(State& self, std::int32_t device, std::uint64_t bytes, Add add, Drop drop) {
  const std::uint64_t capacity = profile().capacity;
  if (bytes > capacity) return refuse_full(device, bytes, sum_committed(self, device, Sweeping::with_lock));
  sweep_the_dead(self);
  // Claims of others that are about to be taken back must not refuse this one: only committed bytes decide at once, for
  // claims we wait a little.
  for (int attempt = 0; attempt < 200; ++attempt) {
    add();
    if (sum_claimed(self, device) <= capacity) return acl::code::success;
    drop();
    if (sum_committed(self, device, Sweeping::with_lock) > capacity - bytes) break;
    wait_a_little(attempt);
    if (self.file) add_up_shared_claims(self.file);  // what became shared or was let go meanwhile
  }
  return refuse_full(device, bytes, sum_committed(self, device, Sweeping::with_lock));
}

acl::aclError decide_under_lock(State& self, std::int32_t device, std::uint64_t bytes) {
  const FileLock lock(self);
  if (lock.timed_out()) return refuse_locked();
  return decide(
      self, device, bytes, [&] { add_claim(self, device, bytes); }, [&] { drop_claim(self, device, bytes); });
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
acl::aclError place_claim_anyhow(State& self, const ClaimedBlock& what, std::optional<OwnClaim>* out) {
  *out = place_claim(self, what);
  if (!*out && store_more_shared_claims(self.file)) *out = place_claim(self, what);
  return *out ? acl::code::success : refuse_table_full();
}

// The rest of joining a block: when it did not fit on first sight, or there was no entry, or there is no file.
acl::aclError hold_with_lock(State& self, const ClaimedBlock& what) {
  const FileLock lock(self);
  if (lock.timed_out()) return refuse_locked();
  std::optional<OwnClaim> claim;
  if (self.file) {
    sweep_the_dead(self);
    const auto raise = [&] { raise_shared(self, what.device, what.bytes); };
    // Nobody else lowers the sum meanwhile, and nobody has looked at the entries since the sweep.
    const auto lower = [&] { self.file.header().shared[at(what.device)].fetch_sub(what.bytes); };
    if (settled_by_another(self.file, what.block, std::nullopt)) {
      raise();
    } else if (const acl::aclError refused = decide(self, what.device, what.bytes, raise, lower)) {
      return refused;
    }
    if (const acl::aclError refused = place_claim_anyhow(self, what, &claim)) {
      lower();
      return refused;
    }
    settle_claim(self, *claim);
  } else if (const std::uint64_t in_use = sum_claimed(self, what.device); in_use + what.bytes > profile().capacity) {
    return refuse_full(what.device, what.bytes, in_use);
  }
  self.shared.emplace(what.block, SharedBlock{.device = what.device, .bytes = what.bytes, .claim = claim});
  return acl::code::success;
}

bool published_by_another(const State& self, std::int32_t from, std::int32_t to) noexcept {
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

acl::aclError ledger_claim(std::int32_t device, std::uint64_t bytes) {
  State& self = ledger.get();
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
  State& self = ledger.get();
  const std::lock_guard guard(self.mutex);
  join(self);
  self.committed[at(device)] += bytes;
  publish_committed(self, device);
}

void ledger_take_back(std::int32_t device, std::uint64_t bytes) {
  State& self = ledger.get();
  const std::lock_guard guard(self.mutex);
  join(self);
  drop_claim(self, device, bytes);
}

void ledger_release(std::int32_t device, std::uint64_t bytes) {
  State& self = ledger.get();
  const std::lock_guard guard(self.mutex);
  join(self);
  self.committed[at(device)] -= std::min(bytes, self.committed[at(device)]);
  publish_committed(self, device);
  drop_claim(self, device, bytes);  // after it: whoever fits into the room that this makes, commits after us
}

acl::aclError ledger_share(std::int32_t device, std::uint64_t block, std::uint64_t bytes) {
  State& self = ledger.get();
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
  // is in use see one change.
  if (claim) raise_shared(self, device, bytes);
  {
    const WholeChange change(self);
    if (claim) settle_shared_claim(self.file, *claim);
    self.committed[at(device)] -= std::min(bytes, self.committed[at(device)]);
    publish_committed(self, device);
  }
  self.shared.emplace(block, SharedBlock{.device = device, .bytes = bytes, .claim = claim});
  drop_claim(self, device, bytes);
  return acl::code::success;
}

acl::aclError ledger_hold(std::int32_t device, std::uint64_t block, std::uint64_t bytes) {
  State& self = ledger.get();
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
  State& self = ledger.get();
  const std::lock_guard guard(self.mutex);
  const auto held = self.shared.find(block);
  if (held == self.shared.end()) return false;
  if (--held->second.holds > 0) return true;
  if (self.file && held->second.claim) end_claim(self, *held->second.claim);
  self.shared.erase(held);
  return true;
}

std::uint64_t ledger_bytes_in_use(std::int32_t device) {
  if (device < 0 || device >= max_devices) return 0;
  (void)profile();  // read before the lock is held: reading takes a lock that comes before it
  State& self = ledger.get();
  const std::lock_guard guard(self.mutex);
  join(self);
  const FileLock lock(self);
  if (lock.timed_out()) return sum_committed(self, device, Sweeping::no);  // with the dead in it: an upper bound
  sweep_the_dead(self);
  return sum_committed(self, device, Sweeping::with_lock);
}

acl::aclError ledger_grant(std::int32_t from, std::int32_t to) {
  State& self = ledger.get();
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
  State& self = ledger.get();
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
  State& self = ledger.get();
  const std::lock_guard guard(self.mutex);
  join(self);
  if (self.grants[at(from)][at(to)] != 0) return true;
  if (!published_by_another(self, from, to)) return false;
  const FileLock lock(self);  // by somebody: alive?
  if (!lock.timed_out()) sweep_the_dead(self);
  return published_by_another(self, from, to);
}

std::uint64_t ledger_grants_held() {
  State* self = ledger.existing();
  if (self == nullptr) return 0;
  const std::lock_guard guard(self->mutex);
  std::uint64_t held = 0;
  for (const auto& row : self->grants) {
    for (const std::uint64_t count : row) held += count;
  }
  return held;
}

std::string_view ledger_scope() {
  (void)profile();  // read before the lock is held: reading takes a lock that comes before it
  State& self = ledger.get();
  const std::lock_guard guard(self.mutex);
  join(self);
  return self.file ? "machine" : "process";
}

std::string ledger_note() {
  (void)profile();  // read before the lock is held: reading takes a lock that comes before it
  State& self = ledger.get();
  const std::lock_guard guard(self.mutex);
  join(self);
  return self.note;
}

void ledger_shut_down() {
  State* self = ledger.existing();
  if (self == nullptr) return;
  const std::lock_guard guard(self->mutex);
  if (self->file && lock_file(*self) == Held::yes) {
    self->file.slot(self->slot).clear();
    self->file.drop_slot(self->slot);
    sweep_the_dead(*self);  // and with them what this process shared
    bool last = true;
    for (const StateSlot& slot : self->file.used_slots()) last = last && slot.pid.load() == 0;
    if (last) self->file.remove();
  }
  leave_file(*self);  // and with it its locks
  self->joined = false;
  self->claimed = {};
  self->committed = {};
  self->grants = {};
  self->shared.clear();
}

void ledger_before_fork() { ledger.before_fork(); }
void ledger_after_fork_in_parent() { ledger.after_fork_in_parent(); }
void ledger_after_fork_in_child() { ledger.after_fork_in_child(); }

}  // namespace devshare::host
