// SPDX-License-Identifier: Apache-2.0
// What aclrtMallocPhysical and aclrtMemGetAllocationGranularity accept as a kind of memory, and what they make of it.
#pragma once

#include <devshare/acl/types.hpp>
#include <devshare/acl/vmm_types.hpp>

#include <cstdint>

namespace devshare::host {

struct PhysicalKind {
  std::uint64_t page_size = 0;  // which is the granularity of sizes and addresses
  std::int32_t device = -1;     // physical; -1: in the host's memory
  bool p2p = false;
};

// Refuses with 100000 what no product has or has not in that place, with 207000 what this product has not, with 107001
// a device that is not there.
acl::aclError physical_kind(const acl::aclrtPhysicalMemProp& property, PhysicalKind* out);

}  // namespace devshare::host
