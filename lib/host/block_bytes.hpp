// SPDX-License-Identifier: Apache-2.0
// How copies reach the bytes of a block.
//
// A cold block is copied through its descriptor: no fault, no mapping. Mapping costs as much as four to six such
// copies, so a block is mapped when the bytes copied reach four times its size; small blocks stay cold a while longer.
// Whoever needs an address (a kernel, devshare/host.hpp) maps at once.
//
// Every function takes a block that the caller has pinned and a range that lies in it.
#pragma once

#include "block_record.hpp"

#include <sys/types.h>

#include <span>

namespace devshare::host {

// Bytes copied before the switch to a mapping.
inline constexpr std::uint64_t cold_copies_of_size = 4;
inline constexpr std::uint64_t cold_bytes_at_least = 64 << 10;

// 0 or an errno. EFAULT: the host range is not there. After a failure the destination holds a part of the bytes.
int read_block(Block& block, std::uint64_t offset, void* host, std::uint64_t count);
int write_block(Block& block, std::uint64_t offset, const void* host, std::uint64_t count);
int fill_block(Block& block, std::uint64_t offset, unsigned char value, std::uint64_t count);
int move_block(Block& to, std::uint64_t to_offset, Block& from, std::uint64_t from_offset, std::uint64_t count);

// The view of the block, made now if there is none. Null with errno set when the kernel gives no mapping.
std::byte* map_block(Block& block);

// The same for pieces that lie one behind the other in one reservation, all of them or as many as the kernel gives.
// False with errno set.
bool map_pieces(std::span<const PinnedBlock> pieces);

// Gives a block that is not published yet its bytes: `descriptor` from `file_offset` on.
void open_block_bytes(Block& block, UniqueFd descriptor, std::uint64_t file_offset) noexcept;

// Likewise for bytes that belong to somebody else, who outlives the block: a descriptor (-1: none), and a view if they
// are at an address already.
void lend_block_bytes(Block& block, int descriptor, std::byte* view) noexcept;

// An import enters the set of cold ones when it is published, and leaves it when it is mapped or ends. The set is
// bounded: past the bound the one not copied from for longest is mapped, so that descriptors stay few (B051).
void admit_cold_import(Block& block);
void forget_cold_import(Block& block);

// Unmaps and closes what is left. The block is dying, and nobody uses it.
void close_block_bytes(Block& block);

// The bound, from the descriptor limit of this moment: an eighth of it, at most 64.
void set_cold_import_bound();

struct ByteCounters {
  std::uint64_t views = 0;
  std::uint64_t descriptors = 0;
};
ByteCounters byte_counters();

// Around fork, as a part of the blocks module.
void block_bytes_before_fork();
void block_bytes_after_fork_in_parent();
void block_bytes_after_fork_in_child();

}  // namespace devshare::host
