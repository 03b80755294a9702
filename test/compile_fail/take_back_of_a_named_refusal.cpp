// SPDX-License-Identifier: Apache-2.0
// What gives an object away says so where it is called: by std::move.
// reason: write std::move(refused).take_back(), or std::move(result).error().take_back()
#include <devshare/exported.hpp>

using namespace devshare;

DeviceMemory right(Result<SharedMemoryKey<>, Refused<DeviceMemory>> result) {
  return std::move(result).error().take_back();
}

#if DEVSHARE_BAD == 1
void wrong(Refused<DeviceMemory>& refused) { refused.take_back(); }
#endif
#if DEVSHARE_BAD == 2
void wrong(Result<SharedMemoryKey<>, Refused<DeviceMemory>>& result) { result.error().take_back(); }
#endif
