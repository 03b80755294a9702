// SPDX-License-Identifier: Apache-2.0
// Closed on one path only: the compiler loses count, clang-tidy does not.
// only: clang-tidy
// expect(clang-tidy): 'memory' used after it was moved \[bugprone-use-after-move
#include <devshare/exported.hpp>

using namespace devshare;

auto right(DeviceMemory memory, bool early) {
  if (early) return std::move(memory).close();
  static_cast<void>(memory.bytes());
  return std::move(memory).close();
}

#ifdef DEVSHARE_BAD
auto mistake_1(DeviceMemory memory, bool early) {
  if (early) static_cast<void>(std::move(memory).close());
  return memory.bytes();
}
#endif
#ifdef DEVSHARE_BAD
auto mistake_2(DeviceMemory memory, bool early) {
  if (early) static_cast<void>(export_key(std::move(memory)));
  return std::move(memory).close();
}
#endif
