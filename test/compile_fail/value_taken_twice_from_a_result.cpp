// SPDX-License-Identifier: Apache-2.0
// A value leaves its Result once; what is left is moved from.
// only: clang-tidy
// expect(clang-tidy): 'result' used after it was moved \[bugprone-use-after-move
#include <devshare/exported.hpp>

using namespace devshare;

DeviceMemory right(Result<DeviceMemory> result) { return *std::move(result); }

#ifdef DEVSHARE_BAD
void mistake_1(Result<DeviceMemory> result) {
  DeviceMemory memory = *std::move(result);
  DeviceMemory other = *std::move(result);
}
#endif
#ifdef DEVSHARE_BAD
void mistake_2(Result<SharedMemoryKey<>, Refused<DeviceMemory>> result) {
  DeviceMemory memory = std::move(result).error().take_back();
  DeviceMemory other = std::move(result).error().take_back();
}
#endif
