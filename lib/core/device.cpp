// SPDX-License-Identifier: Apache-2.0
#include "host_wish.hpp"
#include "runtime_state.hpp"

#include <devshare/copy.hpp>
#include <devshare/device.hpp>
#include <devshare/memory.hpp>

namespace devshare {

Result<void> Device::make_current() const noexcept {
  if (!session_.alive()) return detail::unusable(session_, Operation::open_device);
  const acl::aclError code = session_.record->table.aclrtSetDevice(number());
  if (code == 0) return {};
  return detail::refusal(*session_.record, Operation::open_device, acl::Entry::aclrtSetDevice, code, {.device = number()});
}

Result<MemoryInfo> Device::memory_info() const noexcept {
  if (!session_.alive()) return detail::unusable(session_, Operation::query_device);
  const detail::RuntimeRecord& record = *session_.record;
  if (record.table.aclrtGetMemInfo == nullptr) {
    return detail::lacking(Operation::query_device, acl::Entry::aclrtGetMemInfo);
  }
  const detail::CurrentDevice current(record, number());
  acl::aclError code = current.code();
  MemoryInfo info;
  if (code == 0) code = record.table.aclrtGetMemInfo(acl::mem_attr::hbm, &info.free, &info.total);
  if (code == 0) return info;
  return detail::refusal(record, Operation::query_device, acl::Entry::aclrtGetMemInfo, code, {.device = number()});
}

namespace detail {

Error copy_refused(const Device& device, Operation operation, std::size_t needed, std::size_t available) noexcept {
  const Errc kind = needed > available ? Errc::out_of_range : Errc::cross_device_copy;
  return Error(kind, operation, {.device = device.number(), .needed = needed, .available = available});
}

Result<void> copy_carefully(const Device& device, const Copy& copy) noexcept {
  if (copy.size > copy.room || copy_forbidden(copy.device_address) || copy_forbidden(copy.other_device_address)) {
    return copy_refused(device, copy.operation, copy.size, copy.room);
  }
  if (!device.session().alive()) return unusable(device.session(), copy.operation);
  const RuntimeRecord& record = *device.session().record;
  const CurrentDevice current(record, device.number());
  acl::aclError code = current.code();
  if (code == 0) code = record.table.aclrtMemcpy(copy.to, copy.room, copy.from, copy.size, copy.kind);
  if (code == 0) return {};
  return refusal(record, copy.operation, acl::Entry::aclrtMemcpy, code,
                 {.device = device.number(), .needed = copy.size, .available = copy.room});
}

HostBacking backing_at(const Session& session, const void* address, std::size_t size) noexcept {
  if (!session.alive() || session.record->extras.backing_at == nullptr) return {};
  return session.record->extras.backing_at(address, size);
}

Result<DeviceMemory> allocate_elsewhere(Device device, std::size_t bytes, Placement placement) noexcept {
  if (!device.session().alive()) return unusable(device.session(), Operation::allocate);
  const RuntimeRecord& record = *device.session().record;
  const CurrentDevice current(record, device.number());
  const HostWishes wishes(record, host_wish_of(placement));
  acl::aclError code = current.code();
  void* address = nullptr;
  if (code == 0) code = record.table.aclrtMalloc(&address, bytes, malloc_policy_of(placement));
  if (code == 0) return DeviceMemory(device.session(), {address, bytes, device.number()});
  return refusal(record, Operation::allocate, acl::Entry::aclrtMalloc, code,
                 {.device = device.number(), .needed = bytes});
}

Result<void> free_elsewhere(Session session, MemoryValue value) noexcept {
  const RuntimeRecord& record = *session.record;
  const CurrentDevice current(record, value.device);
  acl::aclError code = current.code();
  if (code == 0) code = record.table.aclrtFree(value.address);
  if (code == 0) return {};
  return refusal(record, Operation::free_memory, acl::Entry::aclrtFree, code, {.device = value.device});
}

}  // namespace detail

Result<void> fill(const Device& device, DeviceSpan<std::byte> to, std::byte value) noexcept {
  if (to.empty()) return {};
  if (!device.session().alive()) return detail::unusable(device.session(), Operation::fill);
  const detail::RuntimeRecord& record = *device.session().record;
  const detail::CurrentDevice current(record, device.number());
  acl::aclError code = current.code();
  if (code == 0) {
    code = record.table.aclrtMemset(to.data().address(), to.size(), std::to_integer<std::int32_t>(value), to.size());
  }
  if (code == 0) return {};
  return detail::refusal(record, Operation::fill, acl::Entry::aclrtMemset, code,
                         {.device = device.number(), .needed = to.size(), .available = to.size()});
}

}  // namespace devshare
