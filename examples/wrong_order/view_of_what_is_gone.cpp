// SPDX-License-Identifier: Apache-2.0
// Keep a view of memory that ends with the line it was made in.
// reason: the memory ends with the temporary: keep it in a named object
#include <devshare/devshare.hpp>

using namespace devshare;

DeviceSpan<std::byte> make(const Device& device) { return (*DeviceMemory::allocate(device, 4096)).bytes(); }
