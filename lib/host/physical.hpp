// SPDX-License-Identifier: Apache-2.0
// Physical memory: bytes that have a handle and, until they are mapped, no address.
//
// A handle is what a program holds, counted: creating or importing it counts one, each retain one more, each mapping
// one for as long as it lasts. The memory goes with its last count; on the machine it lives as long as any process
// holds it.
#pragma once

#include "block.hpp"
#include "machine_pages.hpp"

#include <devshare/acl/types.hpp>
#include <devshare/acl/vmm_types.hpp>

#include <atomic>
#include <cstdint>
#include <memory>

namespace devshare::host {

// Where a handle came from: one reservation takes handles of one origin only (R29).
enum class HandleOrigin : std::uint8_t { allocated, imported_v1, imported_v2 };

// What a handle stands for. Constant once made.
struct PhysicalMemory {
  UniqueFd descriptor;  // a memfd of `size` bytes, sealed unless a fallback of the system was allowed
  bool sealed = true;
  std::uint64_t page_bytes = normal_page_bytes();  // of the machine
  bool populated = false;                          // all pages were there when it was made
  bool populate = false;                           // its mappings have all pages from the start
  std::uint64_t size = 0;  // whole pages of the emulated device
  std::uint64_t page_size = 0;
  acl::aclrtPhysicalMemProp property{};  // as asked for, with a user's device id
  std::int32_t device = -1;              // physical: where the bytes are; -1 in the host's memory
  std::int32_t local_device = -1;        // physical: the device an import was opened on; `device` otherwise
  HandleOrigin origin = HandleOrigin::allocated;
  bool p2p = false;        // allocated for access from other devices
  bool read_only = false;  // imported for reading: the descriptor cannot write
  std::uint64_t id = 0;    // unique in this process, never reused

  bool charged = false;  // its bytes are claimed on the device by this process

  // Inode of the memfd: the same in every process that holds the memory. Asked for once it matters to another process.
  std::uint64_t file() const noexcept;
  mutable std::atomic<std::uint64_t> known_file{0};

  PhysicalMemory();  // with an id of its own
  PhysicalMemory(const PhysicalMemory&) = delete;
  PhysicalMemory& operator=(const PhysicalMemory&) = delete;
  ~PhysicalMemory();  // gives the bytes back to the device

  bool in_host_memory() const noexcept { return device < 0; }
};
using Physical = std::shared_ptr<const PhysicalMemory>;

// The memory a handle stands for; null for what is no live handle of this process. A handle whose counts are all freed
// is none, even while mappings keep its memory.
Physical physical_of(acl::aclrtDrvMemHandle handle);

// A new handle, counted once.
acl::aclrtDrvMemHandle add_handle(Physical memory);

// The handle of a memory that has one, counted once more: as often as aclrtMemRetainAllocationHandle, or the import of
// a token that is imported already, gives it out. Revives a handle that only mappings keep; null when nothing does.
acl::aclrtDrvMemHandle retain_handle(const PhysicalMemory& memory);

// One count less (R39). 107000 when only mappings are left of it, 107017 when nothing is.
acl::aclError free_handle(acl::aclrtDrvMemHandle handle);

// 107017, with a text that says what to do.
[[nodiscard]] acl::aclError refuse_handle(acl::aclrtDrvMemHandle handle);

// The counts that mappings hold.
Physical hold_for_mapping(acl::aclrtDrvMemHandle handle);  // null for what is no live handle
void drop_from_mapping(const Physical& memory);

// New memory, its bytes claimed on its device, in the pages that this thread wishes (page_wish.hpp): huge ones where it
// can have them. On a refusal nothing is left behind.
struct PhysicalRequest {
  std::uint64_t size = 0;  // whole pages
  std::uint64_t page_size = 0;
  acl::aclrtPhysicalMemProp property{};
  std::int32_t device = -1;  // physical; -1: in the host's memory
  bool p2p = false;
};
acl::aclError make_physical(const PhysicalRequest& request, Physical* out);

// Memory of another process: its descriptor has been checked. Held on its device together with the others that hold it.
struct PhysicalImport {
  UniqueFd descriptor;
  std::uint64_t file = 0;  // its inode
  bool sealed = true;
  std::uint64_t page_bytes = normal_page_bytes();
  bool populate = false;
  std::uint64_t size = 0;
  std::uint64_t page_size = 0;
  acl::aclrtPhysicalMemProp property{};
  std::int32_t device = -1;
  std::int32_t local_device = -1;
  HandleOrigin origin = HandleOrigin::imported_v1;
  bool p2p = false;
  bool read_only = false;
  bool elsewhere = false;  // on the device of another server, which has its own count of it
};
acl::aclError adopt_physical(PhysicalImport&& import, Physical* out);

// aclFinalize, after every mapping has ended: every handle goes.
void handles_shut_down();

struct PhysicalCounters {
  std::uint64_t handles = 0;   // live
  std::uint64_t memories = 0;  // that handles, mappings or copies keep: each holds one descriptor
  std::uint64_t bytes = 0;     // of them, as charged to devices
};
PhysicalCounters physical_counters();

}  // namespace devshare::host
