// SPDX-License-Identifier: Apache-2.0
// A device address is a value for the device: the host cannot follow it.
// reason: device memory is not host memory: copy it, or launch a kernel on it
#include <devshare/address.hpp>

using namespace devshare;

struct Header {
  int length;
};
Header* right(DevicePtr<Header> pointer) { return pointer.address(); }

#if DEVSHARE_BAD == 1
auto wrong(DevicePtr<int> pointer) { return *pointer; }
#endif
#if DEVSHARE_BAD == 2
auto wrong(DevicePtr<int> pointer) { return pointer[1]; }
#endif
#if DEVSHARE_BAD == 3
auto wrong(DevicePtr<Header> pointer) { return pointer->length; }
#endif
#if DEVSHARE_BAD == 4
auto wrong(DeviceSpan<int> span) { return span[1]; }
#endif
#if DEVSHARE_BAD == 5
void wrong(DeviceSpan<std::byte> span) { span[0] = std::byte{1}; }
#endif
