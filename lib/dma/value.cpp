// SPDX-License-Identifier: Apache-2.0
#include <devshare/value.hpp>

#include "device_call.hpp"

namespace devshare {

using acl::Table;

Result<void> write_value(const StreamRef& stream, DevicePtr<std::uint64_t> word, std::uint64_t value) noexcept {
  const Device device = stream.device();
  return detail::call_on<&Table::aclrtValueWrite>(device.session(), device.number(), Operation::write_value,
                                                  static_cast<void*>(word.address()), value, std::uint32_t{0},
                                                  stream.native_handle());
}

Result<void> wait_for_value(const StreamRef& stream, DevicePtr<const std::uint64_t> word, ValueIs condition,
                            std::uint64_t value) noexcept {
  const Device device = stream.device();
  void* const address = const_cast<std::uint64_t*>(word.address());  // the call only reads
  return detail::call_on<&Table::aclrtValueWait>(device.session(), device.number(), Operation::wait_value, address,
                                                 value, static_cast<std::uint32_t>(condition), stream.native_handle());
}

}  // namespace devshare
