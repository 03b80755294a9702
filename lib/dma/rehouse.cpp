// SPDX-License-Identifier: Apache-2.0
#include <devshare/copy.hpp>
#include <devshare/rehouse.hpp>

namespace devshare {
namespace {

Result<Mapping> copy_of(const Device& device, DeviceMemory& memory, Placement placement) noexcept {
  DEVSHARE_TRY(handle, PhysicalHandle::allocate(device, memory.size(), placement));
  DEVSHARE_TRY(mapping, Mapping::of(std::move(handle)));
  DEVSHARE_CHECK(copy_on_device(device, mapping.bytes(), memory.bytes()));
  return mapping;
}

}  // namespace

Result<Mapping, Refused<DeviceMemory>> rehouse(DeviceMemory&& memory, Placement placement) noexcept {
  if (!memory.holds())
    return Refused<DeviceMemory>(Error(Errc::closed, Operation::allocate_physical), std::move(memory));
  auto made = copy_of(memory.device(), memory, placement);
  if (!made) return Refused<DeviceMemory>(made.error(), std::move(memory));
  (void)std::move(memory).close();  // refused, it ends here all the same: its destructor tries again, and reports
  return *std::move(made);
}

}  // namespace devshare
