// SPDX-License-Identifier: Apache-2.0
// A refused step gives its object back, and dropping that is a decision.
// expect(all): a refused step gives its object back: take_back\(\) it, or it ends here
#include <devshare/exported.hpp>

using namespace devshare;

DeviceMemory right(Result<SharedMemoryKey<>, Refused<DeviceMemory>> result) {
  return std::move(result).error().take_back();
}

#ifdef DEVSHARE_BAD
void mistake_1(Result<SharedMemoryKey<>, Refused<DeviceMemory>> result) { std::move(result).error(); }
#endif
#ifdef DEVSHARE_BAD
Refused<DeviceMemory> made();
void mistake_2() { made(); }
#endif
