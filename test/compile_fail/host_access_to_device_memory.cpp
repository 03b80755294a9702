// SPDX-License-Identifier: Apache-2.0
// A device address is a value for the device: the host cannot follow it.
// reason: device memory is not host memory: copy it, or launch a kernel on it
#include <devshare/address.hpp>

using namespace devshare;

struct Header {
  int length;
};
Header* right(DevicePtr<Header> pointer) { return pointer.address(); }

#ifdef DEVSHARE_BAD
auto mistake_1(DevicePtr<int> pointer) { return *pointer; }
#endif
#ifdef DEVSHARE_BAD
auto mistake_2(DevicePtr<int> pointer) { return pointer[1]; }
#endif
#ifdef DEVSHARE_BAD
auto mistake_3(DevicePtr<Header> pointer) { return pointer->length; }
#endif
#ifdef DEVSHARE_BAD
auto mistake_4(DeviceSpan<int> span) { return span[1]; }
#endif
#ifdef DEVSHARE_BAD
void mistake_5(DeviceSpan<std::byte> span) { span[0] = std::byte{1}; }
#endif
