// SPDX-License-Identifier: Apache-2.0
#include "runtime_state.hpp"

#include <devshare/copy.hpp>
#include <devshare/device.hpp>

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

}  // namespace detail

Result<void> fill(const Device& device, DeviceSpan<std::byte> to, std::byte value) noexcept {
  if (to.empty()) return {};
  if (detail::copy_forbidden(to.data().address())) {
    return detail::copy_refused(device, Operation::fill, to.size(), to.size());
  }
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
