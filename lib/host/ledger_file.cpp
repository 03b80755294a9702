// SPDX-License-Identifier: Apache-2.0
#include "ledger.hpp"

#include "failure.hpp"
#include "fork.hpp"
#include "ledger_state.hpp"
#include "profile.hpp"

#include <mutex>
#include <utility>

namespace devshare::host {

PerProcess<LedgerState> ledger_state;

namespace {

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

void leave_file(LedgerState& self) {
  self.file = StateFile();
  self.slot = LedgerState::no_slot;
  self.free_claims = {};
}

constexpr const char* lock_is_held = "the lock of the state file is held by a process that does not run";

// The file of the machine that is played, in the directory that there is now. False: without it from now on.
bool open_file(LedgerState& self) {
  const Profile& machine = profile();
  StateDirectory directory = open_state_directory(machine.state_directory);
  if (!directory.descriptor) {
    work_alone(self, std::move(directory.refused));
    return false;
  }
  std::string refused;
  self.file = StateFile::open(std::move(directory), machine_number(machine), machine.exporter_deadline_ms, &refused);
  if (!self.file) work_alone(self, refused.empty() ? lock_is_held : std::move(refused));
  return static_cast<bool>(self.file);
}

// Takes the file's lock with this process's slot made sure of. A slot, or the whole file, is lost when the program
// closes all its descriptors, or somebody deletes the file: it is joined anew. `alone`: there is no file.
FileLock::Held lock_file(LedgerState& self) {
  for (int attempt = 0; self.file && attempt < 8; ++attempt) {
    if (self.file.intact()) {
      if (!self.file.lock(profile().exporter_deadline_ms)) return FileLock::Held::no;
      if (self.file.named()) {
        if (!slot_is_ours(self) || !self.file.take_slot(self.slot)) take_a_slot(self);
        return self.file ? FileLock::Held::yes : FileLock::Held::alone;
      }
    }
    // Closed before anything is opened again: closing any descriptor of the file drops the locks of all, and a number
    // of ours that the program has closed could be given to the new directory, which looks like the old one.
    leave_file(self);
    if (!open_file(self)) break;
  }
  return self.file ? FileLock::Held::no : FileLock::Held::alone;
}

}  // namespace

void work_alone(LedgerState& self, std::string why) {
  leave_file(self);
  self.note = std::move(why);
}

FileLock::FileLock(LedgerState& self) : self_(self), held_(lock_file(self)) {}

FileLock::~FileLock() {
  if (held_ == Held::yes && self_.file) self_.file.unlock();
}

void join(LedgerState& self) {
  if (!self.joined) {
    self.joined = true;
    self.note.clear();
    if (!open_file(self)) return;
  }
  if (self.file && !slot_is_ours(self)) {
    const FileLock lock(self);
    if (lock.timed_out()) work_alone(self, lock_is_held);
  }
}

void sweep_the_dead(LedgerState& self) {
  if (!self.file) return;
  const auto slots = self.file.used_slots();
  for (std::size_t index = 0; index < slots.size(); ++index) {
    if (index == self.slot || slots[index].pid.load() == 0) continue;
    if (!self.file.slot_held_by_other(index)) slots[index].clear();
  }
  add_up_shared_claims(self.file);
}

acl::aclError refuse_locked() {
  return refuse(acl::code::rt_memory_allocation, Reason::timed_out,
                "the lock of the state file is held by a process that does not run (stopped?)");
}

std::string_view ledger_scope() {
  (void)profile();  // read before the lock is held: reading takes a lock that comes before it
  LedgerState& self = ledger_state.get();
  const std::lock_guard guard(self.mutex);
  join(self);
  return self.file ? "machine" : "process";
}

std::string ledger_note() {
  (void)profile();  // read before the lock is held: reading takes a lock that comes before it
  LedgerState& self = ledger_state.get();
  const std::lock_guard guard(self.mutex);
  join(self);
  return self.note;
}

void ledger_shut_down() {
  LedgerState* self = ledger_state.existing();
  if (self == nullptr) return;
  const std::lock_guard guard(self->mutex);
  if (self->file && lock_file(*self) == FileLock::Held::yes) {
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

void ledger_before_fork() { ledger_state.before_fork(); }
void ledger_after_fork_in_parent() { ledger_state.after_fork_in_parent(); }
void ledger_after_fork_in_child() { ledger_state.after_fork_in_child(); }

}  // namespace devshare::host
