// SPDX-License-Identifier: Apache-2.0
// The destination comes first, and each direction has its own name.
// expect(gcc): no matching function
// expect(clang): no matching function
#include <devshare/copy.hpp>

#include <vector>

using namespace devshare;

auto right(const Device& device, std::vector<float>& host, DeviceSpan<float> memory) {
  return copy_to_host(device, host, memory);
}

#ifdef DEVSHARE_BAD
auto mistake_1(const Device& device, std::vector<float>& host, DeviceSpan<float> memory) {
  return copy_to_device(device, host, memory);
}
#endif
#ifdef DEVSHARE_BAD
auto mistake_2(const Device& device, std::vector<float>& host, DeviceSpan<float> memory) {
  return copy_to_host(device, memory, host);
}
#endif
#ifdef DEVSHARE_BAD
auto mistake_3(const Device& device, std::vector<float>& host, DeviceSpan<float> memory) {
  return copy_on_device(device, host, memory);
}
#endif
