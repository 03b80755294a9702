// SPDX-License-Identifier: Apache-2.0
// The host side of a copy can be written, is of the same type, and is still there afterwards.
// reason: `to` is no writable host range of T, or a temporary
#include <devshare/copy.hpp>

#include <vector>

using namespace devshare;

auto right(const Device& device, std::vector<float>& to, DeviceSpan<const std::byte> from) {
  return copy_to_host(device, to, from.as<const float>());
}

#if DEVSHARE_BAD == 1
auto wrong(const Device& device, const std::vector<float>& to, DeviceSpan<float> from) {
  return copy_to_host(device, to, from);
}
#endif
#if DEVSHARE_BAD == 2
auto wrong(const Device& device, std::span<const float> to, DeviceSpan<float> from) {
  return copy_to_host(device, to, from);
}
#endif
#if DEVSHARE_BAD == 3
auto wrong(const Device& device, std::vector<int>& to, DeviceSpan<float> from) { return copy_to_host(device, to, from); }
#endif
#if DEVSHARE_BAD == 4
auto wrong(const Device& device, DeviceSpan<float> from) {
  return copy_to_host(device, std::vector<float>(4), from);
}
#endif
#if DEVSHARE_BAD == 5
auto wrong(const Device& device, DeviceSpan<float> to, DeviceSpan<float> from) { return copy_to_host(device, to, from); }
#endif
