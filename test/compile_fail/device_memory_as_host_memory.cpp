// SPDX-License-Identifier: Apache-2.0
// Neither a pointer nor a span of device memory becomes one of host memory.
// expect(gcc): cannot convert|could not convert|conversion from|no matching|not declared in this scope
// expect(clang): no viable conversion|cannot initialize|no matching|invalid range expression
#include <devshare/address.hpp>

#include <cstring>

using namespace devshare;

std::byte* right(DeviceSpan<std::byte> span) { return span.data().address(); }  // for a kernel launch or an ACL call

#ifdef DEVSHARE_BAD
std::byte* mistake_1(DeviceSpan<std::byte> span) { return span.data(); }
#endif
#ifdef DEVSHARE_BAD
std::span<std::byte> mistake_2(DeviceSpan<std::byte> span) { return span; }
#endif
#ifdef DEVSHARE_BAD
void mistake_3(void* to, DeviceSpan<std::byte> span) { std::memcpy(to, span.data(), span.size()); }
#endif
#ifdef DEVSHARE_BAD
int mistake_4(DeviceSpan<int> span) {
  int sum = 0;
  for (int number : span) sum += number;
  return sum;
}
#endif
#ifdef DEVSHARE_BAD
DevicePtr<int> mistake_5(int* host) { return host; }
#endif
