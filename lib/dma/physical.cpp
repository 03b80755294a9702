// SPDX-License-Identifier: Apache-2.0
// Physical handles: allocated, or retained from an address. Several PhysicalHandles of one handle share its record, so
// that all of them know of its one export.
#include "../core/host_wish.hpp"
#include "../core/locks.hpp"
#include "../core/session_listeners.hpp"
#include "handle_record.hpp"

#include <devshare/diagnostic.hpp>

#include <atomic>
#include <condition_variable>
#include <deque>
#include <new>
#include <unordered_map>

namespace devshare {
namespace detail {
namespace {

// The records by handle. Guarded by Lock::handles; immortal, so that static objects may end at exit in any order.
struct Table {
  std::unordered_map<acl::aclrtDrvMemHandle, HandleRecord*> records;
  std::unordered_map<acl::aclrtDrvMemHandle, HandleExport> exports;  // of memory that is somebody else's now
  std::deque<acl::aclrtDrvMemHandle> oldest_export;
  std::condition_variable exports_changed;
};
constexpr std::size_t most_remembered = 5'000;

Table& table() noexcept {
  static Table* const made = new Table;
  return *made;
}

void forget_all() noexcept {
  table().records.clear();
  table().exports.clear();
  table().oldest_export.clear();
}

void remember(const HandleRecord& record) {
  Table& all = table();
  if (!all.exports.insert_or_assign(record.handle, record.exported).second) return;
  all.oldest_export.push_back(record.handle);
  if (all.oldest_export.size() <= most_remembered) return;
  all.exports.erase(all.oldest_export.front());
  all.oldest_export.pop_front();
}

// The handles of a session that is over are forgotten; their objects are inert and still have the records.
void session_ended() noexcept {
  const std::lock_guard lock(mutex_of(Lock::handles));
  forget_all();
}

// Threads that waited do not exist here.
void forked() noexcept {
  forget_all();
  new (&table().exports_changed) std::condition_variable;
}

void listen_once() noexcept {
  static constexpr SessionListener listener{&session_ended, &forked};
  static constinit std::atomic<bool> listening = false;
  listen_to_sessions(listener, listening);
}

// Counts one more reference to a handle; a record that is there already wins over a new one.
HandleRecord* enter(HandleRecord* fresh) noexcept {
  listen_once();
  const std::lock_guard lock(mutex_of(Lock::handles));
  const auto [found, added] = table().records.emplace(fresh->handle, fresh);
  HandleRecord* const record = found->second;
  // Memory of our own has a number that was somebody's before: what that was exported as is not its export.
  if (added && !record->retained) table().exports.erase(record->handle);
  if (!added) {
    record->retained = record->retained || fresh->retained;
    delete fresh;
  }
  ++record->holders;
  return record;
}

// True when that was the last reference: then the record is the caller's to delete.
bool leave(HandleRecord* record) noexcept {
  const std::lock_guard lock(mutex_of(Lock::handles));
  if (--record->holders != 0) return false;
  auto& records = table().records;
  const auto found = records.find(record->handle);
  if (found != records.end() && found->second == record) records.erase(found);
  if (record->retained && record->exported.made && record->session.alive()) remember(*record);
  return true;
}

void abandon_reference(HandleRecord* record) noexcept {
  if (leave(record)) delete record;
}

// Takes back what leave() did. A handle whose last reference was ours for a moment may have got another record
// meanwhile.
void come_back(HandleRecord* record) noexcept {
  const std::lock_guard lock(mutex_of(Lock::handles));
  if (record->holders++ == 0) table().records.emplace(record->handle, record);
}

// Each reference of ours is one of the runtime's. It leaves the table first: once it is freed, the runtime may give the
// number of the handle to another memory.
Result<void> free_reference(HandleRecord* record) noexcept {
  const RuntimeRecord& runtime = *record->session.record;
  const acl::aclrtDrvMemHandle handle = record->handle;
  const std::int32_t device = record->device;
  const std::size_t size = record->physical_size;
  const bool last = leave(record);
  const CurrentDevice current(runtime, device);
  acl::aclError code = current.code();
  if (code == 0) code = runtime.table.aclrtFreePhysical(handle);
  if (code == 0) {
    if (last) delete record;
    return {};
  }
  const Error refused =
      refusal(runtime, Operation::free_handle, acl::Entry::aclrtFreePhysical, code, {.device = device, .needed = size});
  come_back(record);
  return refused;
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

const HandleExport* remembered_export(acl::aclrtDrvMemHandle handle) noexcept {
  const auto found = table().exports.find(handle);
  return found != table().exports.end() ? &found->second : nullptr;
}

std::condition_variable& handle_exports_changed() noexcept { return table().exports_changed; }

Result<HandleRecord*> allocate_handle(const Session& session, std::int32_t device, std::size_t bytes,
                                      const acl::aclrtPhysicalMemProp& property, HostWish host,
                                      Operation operation) noexcept {
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
  const HostWishes wishes(runtime, host);
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
  record->host = host;
  record->needs_access = property.location.type != acl::mem_location_type::device;
  record->drop = &free_reference;
  record->abandon = &abandon_reference;
  return enter(record);
}

std::size_t free_bytes_of_current_device(const RuntimeRecord& runtime) noexcept {
  std::size_t free = 0;
  std::size_t total = 0;
  if (runtime.table.aclrtGetMemInfo == nullptr) return 0;
  for (const acl::aclrtMemAttr kind : {acl::mem_attr::hbm, acl::mem_attr::ddr}) {  // 310P has the latter only
    if (runtime.table.aclrtGetMemInfo(kind, &free, &total) == 0 && total != 0) return free;
  }
  return 0;
}

void PhysicalPolicy::abandon(const Value& value) noexcept { value.record->abandon(value.record); }

const void* PhysicalPolicy::identity(const Value& value) noexcept { return value.record->handle; }

Result<void> PhysicalPolicy::close(const Session&, const Value& value) noexcept {
  return value.record->drop(value.record);
}

HostBacking backing_of(const Session& session, const PhysicalValue& value) noexcept {
  if (!session.alive() || session.record->extras.backing_of == nullptr) return {};
  return session.record->extras.backing_of(value.record->handle);
}

void PhysicalPolicy::park(const Value& value, const Error& error) noexcept {
  detail::park(value.record, value.record->physical_size, error);
}

Result<void> drop_or_park(HandleRecord* record) noexcept {
  auto dropped = record->drop(record);
  if (!dropped) park(record, record->physical_size, dropped.error());
  return dropped;
}

}  // namespace detail

namespace {

Result<PhysicalHandle> allocated(const Device& device, std::size_t bytes, acl::aclrtMemAttr attribute,
                                 acl::aclrtMemLocation location, detail::HostWish host) noexcept {
  constexpr Operation operation = Operation::allocate_physical;
  const detail::Session& session = device.session();
  if (!session.alive()) return detail::unusable(session, operation);
  const acl::aclrtPhysicalMemProp property{.handleType = acl::mem_handle_type::none,
                                           .allocationType = acl::mem_allocation_type::pinned,
                                           .memAttr = attribute,
                                           .location = location,
                                           .reserve = 0};
  DEVSHARE_TRY(record, detail::allocate_handle(session, device.number(), bytes, property, host, operation));
  return PhysicalHandle(session, detail::physical_value(record));
}

}  // namespace

Result<PhysicalHandle> PhysicalHandle::allocate(const Device& device, std::size_t bytes, Placement placement) noexcept {
  return allocated(device, bytes, detail::attribute_of(placement),
                   {.id = static_cast<std::uint32_t>(device.number()), .type = acl::mem_location_type::device},
                   detail::host_wish_of(placement));
}

Result<PhysicalHandle> PhysicalHandle::allocate_on_host(const Device& device, std::size_t bytes,
                                                        HostPlacement placement) noexcept {
  const auto attribute = placement.huge_pages ? acl::mem_attr::ddr_huge : acl::mem_attr::ddr_normal;
  const detail::HostWish host{placement.host_pages, placement.populate};
  if (placement.numa_node == HostPlacement::any_node) {
    return allocated(device, bytes, attribute, {.id = 0, .type = acl::mem_location_type::host}, host);
  }
  if (placement.numa_node < 0)
    return Error(Errc::invalid_argument, Operation::allocate_physical, {.device = device.number()});
  return allocated(device, bytes, attribute,
                   {.id = static_cast<std::uint32_t>(placement.numa_node), .type = acl::mem_location_type::host_numa},
                   host);
}

namespace {

// How long the piece is that is mapped at `address`: what the runtime says, or where it cannot say, whole pages of what
// the caller says. A span that is not in the last of those pages would make a ticket that promises too much or too
// little.
Result<std::size_t> mapped_size(const detail::RuntimeRecord& runtime, const Device& device,
                                DeviceSpan<std::byte> mapped, std::size_t granularity) noexcept {
  constexpr Operation operation = Operation::retain_handle;
  const std::size_t whole_pages = (mapped.size() + granularity - 1) / granularity * granularity;
  if (runtime.table.aclrtMemGetAddressRange == nullptr) return whole_pages;
  void* base = nullptr;
  std::size_t size = 0;
  const acl::aclError code = runtime.table.aclrtMemGetAddressRange(mapped.data().address(), &base, &size);
  if (code != 0) {
    return detail::refusal(runtime, operation, acl::Entry::aclrtMemGetAddressRange, code, {.device = device.number()});
  }
  if (base != mapped.data().address() || size != whole_pages) {
    return Error(Errc::out_of_range, operation, {.device = device.number(), .needed = whole_pages, .available = size});
  }
  return size;
}

// What to ask for when memory like that of somebody else's handle is allocated: what it was asked to be, as far as can
// be seen.
detail::HostWish wish_for(const detail::RuntimeRecord& runtime, acl::aclrtDrvMemHandle handle) noexcept {
  if (runtime.extras.backing_of == nullptr) return {};
  const HostBacking backing = runtime.extras.backing_of(handle);
  if (backing.pages == HostBacking::Pages::huge) return {.pages = HostPages::huge_if_free};
  return {.populate = backing.populated ? Populate::now : Populate::when_touched};
}

// The record of a handle that was retained just now.
Result<detail::HandleRecord> describe_retained(const Device& device, acl::aclrtDrvMemHandle handle,
                                               DeviceSpan<std::byte> mapped) noexcept {
  constexpr Operation operation = Operation::retain_handle;
  const detail::RuntimeRecord& runtime = *device.session().record;
  detail::HandleRecord record;
  record.session = device.session();
  record.handle = handle;
  record.device = device.number();
  record.retained = true;
  record.drop = &detail::free_reference;
  record.abandon = &detail::abandon_reference;
  const acl::aclError code = runtime.table.aclrtMemGetAllocationPropertiesFromHandle(handle, &record.property);
  if (code != 0) {
    return detail::refusal(runtime, operation, acl::Entry::aclrtMemGetAllocationPropertiesFromHandle, code,
                           {.device = device.number()});
  }
  record.host = wish_for(runtime, handle);
  record.needs_access = record.property.location.type != acl::mem_location_type::device;
  const auto owner = static_cast<std::int32_t>(record.property.location.id);
  if (!record.needs_access && owner != device.number()) {  // the caller's device would go into tickets
    return Error(Errc::invalid_argument, operation, {.device = device.number(), .peer_device = owner});
  }
  DEVSHARE_TRY(granularity, detail::granularity_of(runtime, record.property, device.number(), operation));
  DEVSHARE_TRY(physical_size, mapped_size(runtime, device, mapped, granularity));
  record.size = mapped.size();
  record.physical_size = physical_size;
  return record;
}

}  // namespace

Result<PhysicalHandle> PhysicalHandle::retain_from(const Device& device, DeviceSpan<std::byte> mapped) noexcept {
  constexpr Operation operation = Operation::retain_handle;
  const detail::Session& session = device.session();
  if (!session.alive()) return detail::unusable(session, operation);
  if (mapped.empty()) return Error(Errc::invalid_argument, operation, {.device = device.number()});
  const detail::RuntimeRecord& runtime = *session.record;
  const acl::Table& table = runtime.table;
  if (table.aclrtMemRetainAllocationHandle == nullptr || table.aclrtFreePhysical == nullptr) {
    return detail::lacking(operation, acl::Entry::aclrtMemRetainAllocationHandle);
  }
  if (table.aclrtMemGetAllocationPropertiesFromHandle == nullptr) {
    return detail::lacking(operation, acl::Entry::aclrtMemGetAllocationPropertiesFromHandle);
  }
  const detail::CurrentDevice current(runtime, device.number());
  if (current.code() != 0) {
    return detail::refusal(runtime, operation, acl::Entry::aclrtSetDevice, current.code(), {.device = device.number()});
  }
  acl::aclrtDrvMemHandle handle = nullptr;
  const acl::aclError code = table.aclrtMemRetainAllocationHandle(mapped.data().address(), &handle);
  if (code != 0) {
    return detail::refusal(runtime, operation, acl::Entry::aclrtMemRetainAllocationHandle, code,
                           {.device = device.number(), .needed = mapped.size()});
  }
  auto described = describe_retained(device, handle, mapped);
  if (!described) {
    if (table.aclrtFreePhysical(handle) != 0)
      detail::report({DiagnosticEvent::close_failed, described.error(), handle});
    return described.error();
  }
  return PhysicalHandle(session, detail::physical_value(detail::enter(new detail::HandleRecord(*described))));
}

Result<void, Refused<PhysicalHandle>> PhysicalHandle::close() && noexcept {
  return detail::close_or_give_back(*this, owned_, Operation::free_handle);
}

}  // namespace devshare
