// SPDX-License-Identifier: Apache-2.0
// What this process has in the ledger and where it stands in the state file. For the files that the ledger consists of:
// the file and its lock, this process's slot in it, sums over all slots, claims of bytes, memory that several processes
// hold, peer access.
#pragma once

#include "per_process.hpp"
#include "shared_claims.hpp"
#include "state_file.hpp"

#include <devshare/acl/types.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>

namespace devshare::host {

// A block that this process holds together with others, or may.
struct SharedBlock {
  std::int32_t device = -1;
  std::uint64_t bytes = 0;
  std::uint64_t holds = 1;
  std::optional<OwnClaim> claim{};  // its entry in the table, where there is one
};

struct LedgerState : ProcessState<LedgerState> {
  static constexpr std::size_t no_slot = slot_count;

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

extern PerProcess<LedgerState> ledger_state;

inline std::size_t at(std::int32_t device) noexcept { return static_cast<std::size_t>(device); }

// All of the following is called under the lock of the state.

// --- the file ---

// Makes sure that the file was looked for, and that this process has a slot in it if there is one.
void join(LedgerState& self);

// Without the file from now on; the note says why.
void work_alone(LedgerState& self, std::string why);

// The lock of the file, if there is a file.
class FileLock {
 public:
  enum class Held { yes, alone, no };

  explicit FileLock(LedgerState& self);
  ~FileLock();
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;

  bool timed_out() const noexcept { return held_ == Held::no; }

 private:
  LedgerState& self_;
  Held held_;
};
acl::aclError refuse_locked();

// With the file's lock held.
void sweep_the_dead(LedgerState& self);

// --- this process's slot ---

inline StateSlot* own_slot(const LedgerState& self) noexcept {
  return self.file && self.slot != LedgerState::no_slot ? &self.file.slot(self.slot) : nullptr;
}

inline bool slot_is_ours(const LedgerState& self) noexcept {
  const StateSlot* slot = own_slot(self);
  return slot != nullptr && slot->generation.load() == self.generation;
}

void publish_claimed(const LedgerState& self, std::int32_t device) noexcept;
void publish_committed(const LedgerState& self, std::int32_t device) noexcept;
void publish_grants(const LedgerState& self, std::int32_t from) noexcept;

// A bit for each device to which this process holds the direction on.
std::uint16_t reach_of(const LedgerState& self, std::int32_t from) noexcept;

// With the file's lock held: takes the first free slot and writes into it what this process has.
void take_a_slot(LedgerState& self);

// --- sums over all slots ---

std::uint64_t sum_claimed(const LedgerState& self, std::int32_t device) noexcept;

// One moment of all slots and of the table. Where somebody was stopped in the middle of a change, a moment of all but
// that change, which then shows too little and not too much; where all change faster than they can be read, the last
// sum. Who was killed in the middle of a change is swept away, where the lock is held.
enum class Sweeping : bool { no, with_lock };
std::uint64_t sum_committed(LedgerState& self, std::int32_t device, Sweeping sweeping);

// For somebody who is in the middle of something and may have lost his processor.
void wait_a_little(int attempt) noexcept;

// --- claims ---

// Makes a claim on a device or takes it back.
using ChangeClaim = void (*)(LedgerState& self, std::int32_t device, std::uint64_t bytes) noexcept;

void drop_claim(LedgerState& self, std::int32_t device, std::uint64_t bytes) noexcept;

// The rest of a claim that did not fit on first sight, with the file's lock held. `add` and `drop` make it and take it
// back.
acl::aclError decide(LedgerState& self, std::int32_t device, std::uint64_t bytes, ChangeClaim add, ChangeClaim drop);
acl::aclError refuse_full(std::int32_t device, std::uint64_t bytes, std::uint64_t in_use);

// --- memory that several processes hold ---

// With the file's lock held, in a new slot: what the old one said of shared blocks went with it. False when the table
// is full.
bool republish_shared(LedgerState& self);

}  // namespace devshare::host
