// SPDX-License-Identifier: Apache-2.0
// Closing ends an object, so it takes one that may change and that nothing else still holds: a Result would go
// on holding what is left of it.
// reason: const, or still inside a Result: make a named object of it first, then close that
#include <devshare/exported.hpp>

using namespace devshare;

auto right(Result<SharedMemoryKey<>> result) {
  SharedMemoryKey<> key = *std::move(result);
  return std::move(key).close();
}

#ifdef DEVSHARE_BAD
void mistake_1(const SharedMemoryKey<>& key) { key.close(); }
#endif
#ifdef DEVSHARE_BAD
void mistake_2(const SharedMemoryKey<>& key) { std::move(key).close(); }
#endif
#ifdef DEVSHARE_BAD
void mistake_3(Result<SharedMemoryKey<>>& result) { (*result).close(); }
#endif
#ifdef DEVSHARE_BAD
void mistake_4(Result<SharedMemoryKey<>>& result) { std::move(*result).close(); }
#endif
#ifdef DEVSHARE_BAD
void mistake_5(Result<SharedMemoryKey<>>& result) { result.value().close(); }
#endif
