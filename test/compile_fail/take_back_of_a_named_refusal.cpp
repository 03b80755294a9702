// SPDX-License-Identifier: Apache-2.0
// What gives an object away says so where it is called: by std::move.
// reason: write std::move(refused).take_back(), or std::move(result).error().take_back()
#include <devshare/exported.hpp>

using namespace devshare;

DeviceMemory right(Result<SharedMemoryKey<>, Refused<DeviceMemory>> result) {
  return std::move(result).error().take_back();
}

#ifdef DEVSHARE_BAD
void mistake_1(Refused<DeviceMemory>& refused) { refused.take_back(); }
#endif
#ifdef DEVSHARE_BAD
void mistake_2(Result<SharedMemoryKey<>, Refused<DeviceMemory>>& result) { result.error().take_back(); }
#endif
