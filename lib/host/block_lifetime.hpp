// SPDX-License-Identifier: Apache-2.0
// Making and freeing allocations, for aclrtMalloc and aclrtFree. Imports come and go by block.hpp.
#pragma once

#include "block.hpp"
#include "window.hpp"

namespace devshare::host {

struct AllocationRequest {
  std::uint64_t size = 0;    // as asked for
  std::uint64_t backed = 0;  // whole pages
  std::uint64_t page_size = 0;
  std::int32_t device = -1;  // physical
  bool read_only = false;
  bool p2p = false;
};

// Claims the bytes, makes them and gives them an address, in the pages that this thread wishes (page_wish.hpp): whole
// huge ones where it can have them. On a refusal nothing is left behind.
acl::aclError allocate_block(const AllocationRequest& request, void** address);

// Frees the allocation that starts at `address`: its importers lose it, copies in flight are waited for. Refuses with
// 107000 what aclrtMalloc did not give, gave and has back, or gave as part of something (R23 for imports).
acl::aclError free_block(void* address);

// A range of addresses in the window, for whoever puts blocks at places of its own. Lowest free first; 0 and a refusal
// with 207001 when there is none.
std::uintptr_t take_addresses(WindowPart part, std::uint64_t bytes, std::uint64_t alignment);
std::uintptr_t take_addresses_at(std::uintptr_t address, std::uint64_t bytes);  // exactly there, in whatever part
void give_back_addresses(std::uintptr_t address, std::uint64_t bytes);

// A block whose bytes and addresses belong to somebody else, who outlives it.
struct PlacedBlock {
  std::uintptr_t address = 0;  // whole granules that are the caller's, with no block in them
  std::uint64_t size = 0;
  std::uint64_t backed = 0;
  std::uint64_t page_size = 0;
  std::int32_t device = -1;
  std::int32_t local_device = -1;
  Origin origin = Origin::mapped;
  bool read_only = false;
  bool p2p = false;
  bool sealed = true;
  bool accessible = true;
  bool shown = false;
  bool populated = false;  // what is shown or viewed
  std::uint64_t page_bytes = 0;
  bool populate = false;
  std::uint32_t access = 0;
  int descriptor = -1;        // -1: there is a view
  std::byte* view = nullptr;  // null: made when it is needed
  std::shared_ptr<const PhysicalMemory> memory = nullptr;
  AliasRange* alias = nullptr;
};
// Makes a view of it at once where its pages want one; 207001 where there is no mapping to be had for that.
acl::aclError place_block(PlacedBlock&& placed);

// Ends the block at `address` if nothing is using it at this moment.
enum class Removed : std::uint8_t { yes, in_use, no_such_block };
Removed remove_block(std::uintptr_t address, Origin origin);

}  // namespace devshare::host
