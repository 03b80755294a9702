// SPDX-License-Identifier: Apache-2.0
// Physical handles: allocated, or retained from an address. Several PhysicalHandles of one handle share its record, so
// that all of them know of its one export.
#include "../core/locks.hpp"
#include "../core/session_listeners.hpp"
#include "handle_record.hpp"

#include <new>
#include <unordered_map>

namespace devshare {
namespace detail {
namespace {

// The records by handle. Guarded by Lock::handles; immortal, so that static objects may end at exit in any order.
using Table = std::unordered_map<acl::aclrtDrvMemHandle, HandleRecord*>;
Table& table() noexcept {
  static Table* const made = new Table;
  return *made;
}

// The handles of a session that is over are forgotten; their objects are inert and still have the records.
void session_ended() noexcept {
  const std::lock_guard lock(mutex_of(Lock::handles));
  table().clear();
}

void forked() noexcept { table().clear(); }

void listen_once() noexcept {
  static constexpr SessionListener listener{&session_ended, &forked};
  static const bool listening = (listen_to_sessions(listener), true);
  (void)listening;
}

// Counts one more reference to a handle; a record that is there already wins over a new one.
HandleRecord* enter(HandleRecord* fresh) noexcept {
  listen_once();
  const std::lock_guard lock(mutex_of(Lock::handles));
  const auto [found, added] = table().emplace(fresh->handle, fresh);
  HandleRecord* const record = found->second;
  if (!added) delete fresh;
  ++record->holders;
  return record;
}

// True when that was the last reference: then the record is the caller's to delete.
bool leave(HandleRecord* record) noexcept {
  const std::lock_guard lock(mutex_of(Lock::handles));
  if (--record->holders != 0) return false;
  const auto found = table().find(record->handle);
  if (found != table().end() && found->second == record) table().erase(found);
  return true;
}

void abandon_reference(HandleRecord* record) noexcept {
  if (leave(record)) delete record;
}

// Each reference of ours is one of the runtime's.
Result<void> free_reference(HandleRecord* record) noexcept {
  const RuntimeRecord& runtime = *record->session.record;
  const acl::aclrtDrvMemHandle handle = record->handle;
  const std::int32_t device = record->device;
  const std::size_t size = record->physical_size;
  if (leave(record)) delete record;
  const CurrentDevice current(runtime, device);
  acl::aclError code = current.code();
  if (code == 0) code = runtime.table.aclrtFreePhysical(handle);
  if (code == 0) return {};
  return refusal(runtime, Operation::free_handle, acl::Entry::aclrtFreePhysical, code,
                 {.device = device, .needed = size});
}

Result<std::size_t> granularity_of(const RuntimeRecord& runtime, acl::aclrtPhysicalMemProp property,
                                   std::int32_t device, Operation operation) noexcept {
  if (runtime.table.aclrtMemGetAllocationGranularity == nullptr) {
    return lacking(operation, acl::Entry::aclrtMemGetAllocationGranularity);
  }
  std::size_t granularity = 0;
  const acl::aclError code =
      runtime.table.aclrtMemGetAllocationGranularity(&property, acl::granularity::minimum, &granularity);
  if (code == 0 && granularity != 0) return granularity;
  return refusal(runtime, operation, acl::Entry::aclrtMemGetAllocationGranularity, code, {.device = device});
}

acl::aclrtMemAttr attribute_of(Placement placement) noexcept {
  namespace attr = acl::mem_attr;
  switch (placement.pages) {
    case Placement::Pages::normal_only:
      return placement.peer_to_peer ? attr::p2p_normal : attr::hbm_normal;
    case Placement::Pages::huge_1g_only:
      return placement.peer_to_peer ? attr::p2p_huge_1g : attr::hbm_huge_1g;
    case Placement::Pages::huge_first:
    case Placement::Pages::huge_only:
      break;
  }
  return placement.peer_to_peer ? attr::p2p_huge : attr::hbm_huge;
}

}  // namespace

Result<HandleRecord*> allocate_handle(const Session& session, std::int32_t device, std::size_t bytes,
                                      const acl::aclrtPhysicalMemProp& property, Operation operation) noexcept {
  const RuntimeRecord& runtime = *session.record;
  if (runtime.table.aclrtMallocPhysical == nullptr || runtime.table.aclrtFreePhysical == nullptr) {
    return lacking(operation, acl::Entry::aclrtMallocPhysical);
  }
  if (bytes == 0) return Error(Errc::invalid_argument, operation, {.device = device});
  const CurrentDevice current(runtime, device);
  if (current.code() != 0) {
    return refusal(runtime, operation, acl::Entry::aclrtSetDevice, current.code(), {.device = device});
  }
  DEVSHARE_TRY(granularity, granularity_of(runtime, property, device, operation));
  if (bytes > SIZE_MAX - granularity) {
    return Error(Errc::out_of_memory, operation, {.device = device, .needed = bytes});
  }
  const std::size_t physical_size = (bytes + granularity - 1) / granularity * granularity;
  acl::aclrtDrvMemHandle handle = nullptr;
  const acl::aclError code = runtime.table.aclrtMallocPhysical(&handle, physical_size, &property, 0);
  if (code != 0) {
    return refusal(runtime, operation, acl::Entry::aclrtMallocPhysical, code,
                   {.device = device, .needed = physical_size});
  }
  auto* const record = new HandleRecord;
  record->session = session;
  record->handle = handle;
  record->device = device;
  record->size = bytes;
  record->physical_size = physical_size;
  record->property = property;
  record->needs_access = property.location.type != acl::mem_location_type::device;
  record->drop = &free_reference;
  record->abandon = &abandon_reference;
  return enter(record);
}

std::size_t free_bytes_of_current_device(const RuntimeRecord& runtime) noexcept {
  std::size_t free = 0;
  std::size_t total = 0;
  if (runtime.table.aclrtGetMemInfo == nullptr) return 0;
  if (runtime.table.aclrtGetMemInfo(acl::mem_attr::hbm, &free, &total) != 0) return 0;
  return free;
}

void PhysicalPolicy::abandon(const Value& value) noexcept { value.record->abandon(value.record); }

const void* PhysicalPolicy::identity(const Value& value) noexcept { return value.record->handle; }

Result<void> PhysicalPolicy::close(const Session&, const Value& value) noexcept {
  return value.record->drop(value.record);
}

}  // namespace detail

namespace {

Result<PhysicalHandle> allocated(const Device& device, std::size_t bytes, acl::aclrtMemAttr attribute,
                                 acl::aclrtMemLocation location) noexcept {
  constexpr Operation operation = Operation::allocate_physical;
  const detail::Session& session = device.session();
  if (!session.alive()) return detail::unusable(session, operation);
  const acl::aclrtPhysicalMemProp property{.handleType = acl::mem_handle_type::none,
                                           .allocationType = acl::mem_allocation_type::pinned,
                                           .memAttr = attribute,
                                           .location = location,
                                           .reserve = 0};
  DEVSHARE_TRY(record, detail::allocate_handle(session, device.number(), bytes, property, operation));
  return PhysicalHandle(session, detail::physical_value(record));
}

}  // namespace

Result<PhysicalHandle> PhysicalHandle::allocate(const Device& device, std::size_t bytes, Placement placement) noexcept {
  return allocated(device, bytes, detail::attribute_of(placement),
                   {.id = static_cast<std::uint32_t>(device.number()), .type = acl::mem_location_type::device});
}

Result<PhysicalHandle> PhysicalHandle::allocate_on_host(const Device& device, std::size_t bytes,
                                                        HostPlacement placement) noexcept {
  const auto attribute = placement.huge_pages ? acl::mem_attr::ddr_huge : acl::mem_attr::ddr_normal;
  if (placement.numa_node == HostPlacement::any_node) {
    return allocated(device, bytes, attribute, {.id = 0, .type = acl::mem_location_type::host});
  }
  if (placement.numa_node < 0)
    return Error(Errc::invalid_argument, Operation::allocate_physical, {.device = device.number()});
  return allocated(device, bytes, attribute,
                   {.id = static_cast<std::uint32_t>(placement.numa_node), .type = acl::mem_location_type::host_numa});
}

// A span of other than the mapping's own size would make a ticket that promises too much or too little.
Result<PhysicalHandle> PhysicalHandle::retain_from(const Device& device, DeviceSpan<std::byte> mapped) noexcept {
  constexpr Operation operation = Operation::retain_handle;
  const detail::Session& session = device.session();
  if (!session.alive()) return detail::unusable(session, operation);
  if (mapped.empty()) return Error(Errc::invalid_argument, operation, {.device = device.number()});
  const detail::RuntimeRecord& runtime = *session.record;
  if (runtime.table.aclrtMemRetainAllocationHandle == nullptr) {
    return detail::lacking(operation, acl::Entry::aclrtMemRetainAllocationHandle);
  }
  const detail::CurrentDevice current(runtime, device.number());
  if (current.code() != 0) {
    return detail::refusal(runtime, operation, acl::Entry::aclrtSetDevice, current.code(), {.device = device.number()});
  }
  void* const address = mapped.data().address();
  acl::aclrtDrvMemHandle handle = nullptr;
  acl::aclError code = runtime.table.aclrtMemRetainAllocationHandle(address, &handle);
  if (code != 0) {
    return detail::refusal(runtime, operation, acl::Entry::aclrtMemRetainAllocationHandle, code,
                           {.device = device.number(), .needed = mapped.size()});
  }
  auto* const fresh = new detail::HandleRecord;
  fresh->session = session;
  fresh->handle = handle;
  fresh->device = device.number();
  fresh->size = mapped.size();
  fresh->physical_size = mapped.size();
  fresh->drop = &detail::free_reference;
  fresh->abandon = &detail::abandon_reference;
  if (runtime.table.aclrtMemGetAllocationPropertiesFromHandle != nullptr &&
      runtime.table.aclrtMemGetAllocationPropertiesFromHandle(handle, &fresh->property) == 0) {
    fresh->needs_access = fresh->property.location.type != acl::mem_location_type::device;
  }
  PhysicalHandle retained(session, detail::physical_value(detail::enter(fresh)));

  if (runtime.table.aclrtMemGetAddressRange != nullptr) {
    void* base = nullptr;
    std::size_t size = 0;
    code = runtime.table.aclrtMemGetAddressRange(address, &base, &size);
    if (code == 0 && (base != address || size != mapped.size())) {
      return Error(Errc::out_of_range, operation,
                   {.device = device.number(), .needed = mapped.size(), .available = size});
    }
  }
  return retained;
}

}  // namespace devshare
