// SPDX-License-Identifier: Apache-2.0
// What ends an object says so where it is called: by std::move.
// reason: write std::move(memory).close(): it ends the memory
#include <devshare/memory.hpp>

using namespace devshare;

auto right(DeviceMemory memory) { return std::move(memory).close(); }

#if DEVSHARE_BAD == 1
void wrong(DeviceMemory memory) { memory.close(); }
#endif
#if DEVSHARE_BAD == 2
void wrong(DeviceMemory& memory) { memory.close(); }
#endif
#if DEVSHARE_BAD == 3
void wrong(Result<DeviceMemory>& result) { result->close(); }
#endif
