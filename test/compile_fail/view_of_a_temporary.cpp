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

#if DEVSHARE_BAD == 1
auto wrong() { return memory().bytes(); }
#endif
#if DEVSHARE_BAD == 2
auto wrong() { return key().bytes(); }
#endif
#if DEVSHARE_BAD == 3
auto wrong() { return mapping().bytes(); }
#endif
#if DEVSHARE_BAD == 4
auto wrong() { return key().owner().size(); }
#endif
#if DEVSHARE_BAD == 5
auto wrong(const Device& device) { return (*DeviceMemory::allocate(device, 64)).bytes(); }
#endif
#if DEVSHARE_BAD == 6
auto wrong(Result<ImportedMapping>& result) { return (*std::move(result)).bytes(); }
#endif
#if DEVSHARE_BAD == 7
auto wrong(DeviceMemory& memory) { return std::move(memory).bytes(); }
#endif
