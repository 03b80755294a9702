// SPDX-License-Identifier: Apache-2.0
// The host side of a copy can be written, is of the same type, and is still there afterwards.
// reason: `to` is no writable host range of T, or a temporary
#include <devshare/copy.hpp>

#include <vector>

using namespace devshare;

auto right(const Device& device, std::vector<float>& to, DeviceSpan<const std::byte> from) {
  return copy_to_host(device, to, from.as<const float>());
}

#ifdef DEVSHARE_BAD
auto mistake_1(const Device& device, const std::vector<float>& to, DeviceSpan<float> from) {
  return copy_to_host(device, to, from);
}
#endif
#ifdef DEVSHARE_BAD
auto mistake_2(const Device& device, std::span<const float> to, DeviceSpan<float> from) {
  return copy_to_host(device, to, from);
}
#endif
#ifdef DEVSHARE_BAD
auto mistake_3(const Device& device, std::vector<int>& to, DeviceSpan<float> from) {
  return copy_to_host(device, to, from);
}
#endif
#ifdef DEVSHARE_BAD
auto mistake_4(const Device& device, DeviceSpan<float> from) {
  return copy_to_host(device, std::vector<float>(4), from);
}
#endif
#ifdef DEVSHARE_BAD
auto mistake_5(const Device& device, DeviceSpan<float> to, DeviceSpan<float> from) {
  return copy_to_host(device, to, from);
}
#endif
