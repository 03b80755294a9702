// SPDX-License-Identifier: Apache-2.0
// The ends of a copy in the parts that lie in one block each, for the files that move bytes.
#pragma once

#include "copy_ends.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace devshare::host {

// A part of an end that lies in one block, or in host memory.
struct Part {
  Block* block = nullptr;  // null: host memory
  std::uint64_t offset = 0;
  std::byte* host = nullptr;
  std::uint64_t size = 0;
};

// The `count` bytes of an end as parts, from the first to the last. `host` is where they are if that is no block.
std::vector<Part> parts_of(const CopyEnd& end, void* host, std::uint64_t count);

// One of them at least is in a block. 0 or an errno, as block_bytes.hpp has it.
int move_part(const Part& to, const Part& from, std::uint64_t count);

// What a call says of such an errno: `count` is what it was to move.
acl::aclError report_move(int error, std::uint64_t count);

}  // namespace devshare::host
