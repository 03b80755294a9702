// SPDX-License-Identifier: Apache-2.0
// The table of memory that several processes hold, in the state file. Each holder has an entry of its own; a block
// counts once, for as long as any holder lives.
//
// Entries are made with the lock of the file held and freed without it. The sum in the header is never too low: it is
// raised before an entry is made, and lowered only by adding the table up.
#pragma once

#include "state_file.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>

namespace devshare::host {

// With the lock of the file held.

// Whether anybody's entry names the block, also one of a process that has just died: then it is in the sum still.
bool claimed_by_anybody(const StateFile& file, std::uint64_t block) noexcept;

// A new entry; the sum is the caller's. Empty when the table or the file system is full.
std::optional<std::size_t> add_shared_claim(StateFile& file, std::uint64_t owner, std::int32_t device,
                                            std::uint64_t block, std::uint64_t bytes) noexcept;

// Frees the entries of slots that have changed hands and sets the sum to what is left.
void add_up_shared_claims(StateFile& file);

// Adds the table up now and then, so that entries that are free do not make it ever longer. Before the sum is raised
// for a new entry, since this sets it.
void tidy_shared_claims(StateFile& file);

// At any time: frees an entry if it is the owner's still. The sum stays, and is too high from then on.
void drop_shared_claim(const StateFile& file, std::size_t index, std::uint64_t owner) noexcept;

}  // namespace devshare::host
