// SPDX-License-Identifier: Apache-2.0
// Making and freeing allocations, for aclrtMalloc and aclrtFree. Imports come and go by block.hpp.
#pragma once

#include "block.hpp"

namespace devshare::host {

struct AllocationRequest {
  std::uint64_t size = 0;    // as asked for
  std::uint64_t backed = 0;  // whole pages
  std::uint64_t page_size = 0;
  std::int32_t device = -1;  // physical
  bool read_only = false;
  bool p2p = false;
};

// Claims the bytes, makes them and gives them an address. On a refusal nothing is left behind.
acl::aclError allocate_block(const AllocationRequest& request, void** address);

// Frees the allocation that starts at `address`: its importers lose it, copies in flight are waited for. Refuses with
// 107000 what aclrtMalloc did not give, gave and has back, or gave as part of something (R23 for imports).
acl::aclError free_block(void* address);

}  // namespace devshare::host
