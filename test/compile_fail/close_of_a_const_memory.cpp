// SPDX-License-Identifier: Apache-2.0
// Closing ends an object, so it takes one that may change and that nothing else still holds: a Result would go
// on holding what is left of it.
// reason: const, or still inside a Result: make a named object of it first, then close that
#include <devshare/memory.hpp>

using namespace devshare;

auto right(Result<DeviceMemory> result) {
  DeviceMemory memory = *std::move(result);
  return std::move(memory).close();
}

#ifdef DEVSHARE_BAD
void mistake_1(const DeviceMemory& memory) { memory.close(); }
#endif
#ifdef DEVSHARE_BAD
void mistake_2(const DeviceMemory& memory) { std::move(memory).close(); }
#endif
#ifdef DEVSHARE_BAD
void mistake_3(Result<DeviceMemory>& result) { (*result).close(); }
#endif
#ifdef DEVSHARE_BAD
void mistake_4(Result<DeviceMemory>& result) { std::move(*result).close(); }
#endif
#ifdef DEVSHARE_BAD
void mistake_5(Result<DeviceMemory>& result) { result.value().close(); }
#endif
