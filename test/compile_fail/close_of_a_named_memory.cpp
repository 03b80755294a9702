// SPDX-License-Identifier: Apache-2.0
// What ends an object says so where it is called: by std::move.
// reason: write std::move(memory).close(): it ends the memory
#include <devshare/memory.hpp>

using namespace devshare;

auto right(DeviceMemory memory) { return std::move(memory).close(); }

#ifdef DEVSHARE_BAD
void mistake_1(DeviceMemory memory) { memory.close(); }
#endif
#ifdef DEVSHARE_BAD
void mistake_2(DeviceMemory& memory) { memory.close(); }
#endif
#ifdef DEVSHARE_BAD
void mistake_3(Result<DeviceMemory>& result) { result->close(); }
#endif
