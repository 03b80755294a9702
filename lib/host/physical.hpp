// SPDX-License-Identifier: Apache-2.0
// Physical memory: bytes that have a handle and, until they are mapped, no address.
//
// A handle is what a program holds, counted: creating or importing it counts one, each retain one more, each mapping
// one for as long as it lasts. The memory goes with its last count; on the machine it lives as long as any process
// holds it.
#pragma once

#include "block.hpp"

#include <devshare/acl/types.hpp>
#include <devshare/acl/vmm_types.hpp>

#include <cstdint>
#include <memory>

namespace devshare::host {

// Where a handle came from: one reservation takes handles of one origin only (R29).
enum class HandleOrigin : std::uint8_t { allocated, imported_v1, imported_v2 };

// What a handle stands for. Constant once made.
struct PhysicalMemory {
  UniqueFd descriptor;                // a memfd of `size` bytes, sealed unless a fallback of the system was allowed
  bool sealed = true;
  std::uint64_t size = 0;             // whole pages of the emulated device
  std::uint64_t page_size = 0;
  acl::aclrtPhysicalMemProp property{};  // as asked for, with a user's device id
  std::int32_t device = -1;           // physical: where the bytes are; -1 in the host's memory
  std::int32_t local_device = -1;     // physical: the device an import was opened on; `device` otherwise
  HandleOrigin origin = HandleOrigin::allocated;
  bool p2p = false;                   // allocated for access from other devices
  std::uint64_t id = 0;               // unique in this process, never reused
  std::uint64_t file = 0;             // inode of the memfd: the same in every process that holds the memory

  PhysicalMemory() = default;
  PhysicalMemory(const PhysicalMemory&) = delete;
  PhysicalMemory& operator=(const PhysicalMemory&) = delete;
  ~PhysicalMemory();  // gives the bytes back to the device

  bool in_host_memory() const noexcept { return device < 0; }
};
using Physical = std::shared_ptr<const PhysicalMemory>;

// The memory a handle stands for; null for what is no live handle of this process.
Physical physical_of(acl::aclrtDrvMemHandle handle);

// A new handle, counted once.
acl::aclrtDrvMemHandle add_handle(Physical memory);

}  // namespace devshare::host
