// SPDX-License-Identifier: Apache-2.0
// One physical handle of this process as the library knows it: what it is, who counts on it, what it was exported as.
#pragma once

#include <devshare/mechanism.hpp>
#include <devshare/physical.hpp>

#include <array>
#include <condition_variable>
#include <cstddef>
#include <cstdint>

namespace devshare::detail {

// The one export of a handle (R27): it cannot be undone, so the record remembers it for as long as the handle lives.
struct HandleExport {
  bool made = false;
  Mechanism kind{};
  bool unrestricted = false;
  std::uint8_t token_size = 0;
  std::array<std::byte, 128> token{};
  std::array<std::byte, 16> nonce{};
};

struct HandleRecord {
  Session session;
  acl::aclrtDrvMemHandle handle = nullptr;
  std::int32_t device = -1;              // of its memory; for host memory and imports the device that uses it
  std::size_t size = 0;                  // as asked for
  std::size_t physical_size = 0;         // whole pages
  acl::aclrtPhysicalMemProp property{};  // what it was allocated with; of no meaning for an import
  HostWish host;                         // what was asked of the machine's memory, to be asked again
  bool needs_access = false;             // the device reaches it only after aclrtMemSetAccess
  // How a reference is given up: own handles and imported ones count in different tables. Refused, it is held still.
  Result<void> (*drop)(HandleRecord*) noexcept = nullptr;
  void (*abandon)(HandleRecord*) noexcept = nullptr;  // in a session that is over, or in a forked child

  bool retained = false;  // by retain_from: the memory may outlive the record

  // Guarded by Lock::handles.
  std::uint32_t holders = 0;  // PhysicalHandles and mapped pieces, each with a reference of the runtime's
  HandleExport exported;
  bool exporting = false;  // one thread is at it; others wait for handle_exports_changed()
};

// Gives up a reference that nobody can try again to give up: refused, it is parked, which reports it.
Result<void> drop_or_park(HandleRecord* record) noexcept;

// Of a handle that somebody else holds still after our last reference of it: its export goes on in the runtime, so it is
// remembered, for a while, by the number of the handle. Lock::handles is held by the caller.
const HandleExport* remembered_export(acl::aclrtDrvMemHandle handle) noexcept;

// For whoever waits for an export that another thread makes, with Lock::handles. Re-made in a forked child.
std::condition_variable& handle_exports_changed() noexcept;

// Allocates what `property` says, in pages as `host` says. The record comes with one reference. For PhysicalHandle and
// Mapping::restore.
Result<HandleRecord*> allocate_handle(const Session& session, std::int32_t device, std::size_t bytes,
                                      const acl::aclrtPhysicalMemProp& property, HostWish host,
                                      Operation operation) noexcept;

inline PhysicalValue physical_value(HandleRecord* record) noexcept {
  return {record, record->size, record->physical_size, record->device};
}

// What the device says is free; 0 where the runtime does not tell. The device is current.
std::size_t free_bytes_of_current_device(const RuntimeRecord& runtime) noexcept;

}  // namespace devshare::detail
