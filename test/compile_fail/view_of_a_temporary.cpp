// SPDX-License-Identifier: Apache-2.0
// A view is good for as long as the object it came from, and this one ends at once.
// reason: ends with the temporary: keep it in a named object
#include <devshare/exported.hpp>
#include <devshare/imported.hpp>

using namespace devshare;

DeviceSpan<std::byte> right(DeviceMemory& memory) { return memory.bytes(); }
DeviceMemory memory();
SharedMemoryKey<> key();
ImportedMapping mapping();

#ifdef DEVSHARE_BAD
auto mistake_1() { return memory().bytes(); }
#endif
#ifdef DEVSHARE_BAD
auto mistake_2() { return key().bytes(); }
#endif
#ifdef DEVSHARE_BAD
auto mistake_3() { return mapping().bytes(); }
#endif
#ifdef DEVSHARE_BAD
auto mistake_4() { return key().owner().size(); }
#endif
#ifdef DEVSHARE_BAD
auto mistake_5(const Device& device) { return (*DeviceMemory::allocate(device, 64)).bytes(); }
#endif
#ifdef DEVSHARE_BAD
auto mistake_6(Result<ImportedMapping>& result) { return (*std::move(result)).bytes(); }
#endif
#ifdef DEVSHARE_BAD
auto mistake_7(DeviceMemory& memory) { return std::move(memory).bytes(); }
#endif
