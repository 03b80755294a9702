// SPDX-License-Identifier: Apache-2.0
// Host and device side of a copy are of one type.
// reason: `from` is no host range of T: as<T>()
#include <devshare/copy.hpp>

#include <vector>

using namespace devshare;

auto right(const Device& device, DeviceSpan<std::byte> to, const std::vector<float>& from) {
  return copy_to_device(device, to.as<float>(), from);
}

#ifdef DEVSHARE_BAD
auto mistake_1(const Device& device, DeviceSpan<std::byte> to, const std::vector<float>& from) {
  return copy_to_device(device, to, from);
}
#endif
#ifdef DEVSHARE_BAD
auto mistake_2(const Device& device, DeviceSpan<std::byte> to, DeviceSpan<std::byte> from) {
  return copy_to_device(device, to, from);
}
#endif
#ifdef DEVSHARE_BAD
auto mistake_3(const Device& device, DeviceSpan<std::byte> to, const void* from) {
  return copy_to_device(device, to, from);
}
#endif
