// SPDX-License-Identifier: Apache-2.0
// Memory of aclrtMallocHost. It outlives aclFinalize, since programs hold plain pointers into it; aclrtFreeHost takes
// it back after the next aclInit too.
#pragma once

#include "host_hold.hpp"

#include <cstddef>
#include <optional>

namespace devshare::host {

struct HostBlock {
  void* base = nullptr;
  std::size_t size = 0;
};
// The block that the address is in, if any.
std::optional<HostBlock> host_block_with(const void* address);

// Holds the block that all of the range is in. Empty when there is none.
HostHold hold_host_block(const void* address, std::size_t count);

// Around fork, as a part of the blocks module.
void host_memory_before_fork();
void host_memory_after_fork_in_parent();
void host_memory_after_fork_in_child();

}  // namespace devshare::host
