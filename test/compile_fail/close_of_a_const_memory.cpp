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

#if DEVSHARE_BAD == 1
void wrong(const DeviceMemory& memory) { memory.close(); }
#endif
#if DEVSHARE_BAD == 2
void wrong(const DeviceMemory& memory) { std::move(memory).close(); }
#endif
#if DEVSHARE_BAD == 3
void wrong(Result<DeviceMemory>& result) { (*result).close(); }
#endif
#if DEVSHARE_BAD == 4
void wrong(Result<DeviceMemory>& result) { std::move(*result).close(); }
#endif
#if DEVSHARE_BAD == 5
void wrong(Result<DeviceMemory>& result) { result.value().close(); }
#endif
