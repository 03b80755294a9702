// SPDX-License-Identifier: Apache-2.0
// Neither a pointer nor a span of device memory becomes one of host memory.
// expect(gcc): cannot convert|could not convert|conversion from|no matching function|range-based .for.|not declared in this scope
// expect(clang): no viable conversion|cannot initialize|no matching|invalid range expression
#include <devshare/address.hpp>

#include <cstring>

using namespace devshare;

std::byte* right(DeviceSpan<std::byte> span) { return span.data().address(); }  // for a kernel launch or an ACL call

#if DEVSHARE_BAD == 1
std::byte* wrong(DeviceSpan<std::byte> span) { return span.data(); }
#endif
#if DEVSHARE_BAD == 2
std::span<std::byte> wrong(DeviceSpan<std::byte> span) { return span; }
#endif
#if DEVSHARE_BAD == 3
void wrong(void* to, DeviceSpan<std::byte> span) { std::memcpy(to, span.data(), span.size()); }
#endif
#if DEVSHARE_BAD == 4
int wrong(DeviceSpan<int> span) {
  int sum = 0;
  for (int number : span) sum += number;
  return sum;
}
#endif
#if DEVSHARE_BAD == 5
DevicePtr<int> wrong(int* host) { return host; }
#endif
