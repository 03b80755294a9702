// SPDX-License-Identifier: Apache-2.0
// The table of memory that several processes hold, in the state file. Each holder has an entry of its own; a block
// counts once, for as long as any holder lives.
//
// Entries come and go without the lock of the file; with it the table gets more storage, and what the dead left is
// freed. The sum in the header is never too low, by two rules:
//   whoever makes an entry raises the sum by its bytes once the entry can be seen, and never lowers it;
//   whoever lowers it has the lock, has read the sum, has then looked at all entries, and sets it only if nobody has
//   raised it meanwhile.
// An entry that was overlooked in that look became visible after the sum was read, so its raise is after it as well.
// Thus nothing is lost wherever its owner is killed: without an entry there is nothing to count, and a raise for which
// there is no entry is gone when the table is added up.
#pragma once

#include "state_file.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace devshare::host {

// What a claim says.
struct ClaimedBlock {
  std::uint64_t block = 0;
  std::uint64_t bytes = 0;
  std::int32_t device = -1;
};

// An entry that this process made.
struct OwnClaim {
  std::uint32_t index = 0;
  ClaimWord word;
};

// Where a process looks for free entries: at those that it gave back, then at all of them in turn.
struct FreeClaims {
  std::vector<std::uint32_t> given_back;
  std::uint32_t next = 0;
  std::uint64_t serial = 0;
};

// Without the lock.

// A new entry, pending; the sum is the caller's. Empty when all entries with storage are taken.
std::optional<OwnClaim> place_shared_claim(const StateFile& file, FreeClaims* free, std::size_t slot,
                                           std::uint64_t generation, const ClaimedBlock& what);

// What a pending entry says is true from now on. Nothing when the slot has changed hands and it is gone.
void settle_shared_claim(const StateFile& file, const OwnClaim& claim) noexcept;

// Frees an entry, if it is ours still.
void drop_shared_claim(const StateFile& file, FreeClaims* free, const OwnClaim& claim);

// Whether a settled entry other than this one names the block, also one of a process that has just died: then it is in
// the sum still.
bool settled_by_another(const StateFile& file, std::uint64_t block, const std::optional<OwnClaim>& except) noexcept;

// Bytes of the blocks in settled entries, every block once: at one moment, if none of them changes meanwhile.
using DeviceSums = std::array<std::uint64_t, state_devices>;
DeviceSums settled_shared_bytes(const StateFile& file);

// With the lock of the file held.

// Frees the entries of slots that have changed hands and sets the sum to what is left, pending or settled.
void add_up_shared_claims(const StateFile& file);

// Storage for some more entries. False when the table or the file system is full.
bool store_more_shared_claims(StateFile& file) noexcept;

// By a process that has the file to itself: its table is as short as a new one.
void clear_shared_claims(const StateFile& file) noexcept;

}  // namespace devshare::host
