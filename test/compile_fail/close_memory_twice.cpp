// SPDX-License-Identifier: Apache-2.0
// What was closed is not closed again: at run time the second close says `closed`, clang says so before.
// only: clang
// expect(clang): invalid invocation of method 'close' on .* while it is in the 'consumed' state
// expect(clang): \[-Werror,-Wconsumed\]
#include <devshare/memory.hpp>

using namespace devshare;

auto right(DeviceMemory memory) { return std::move(memory).close(); }

#ifdef DEVSHARE_BAD
void mistake_1(DeviceMemory memory) {
  static_cast<void>(std::move(memory).close());
  static_cast<void>(std::move(memory).close());
}
#endif
#ifdef DEVSHARE_BAD
void mistake_2(Result<DeviceMemory> result) {
  DeviceMemory memory = *std::move(result);
  static_cast<void>(std::move(memory).close());
  static_cast<void>(std::move(memory).close());
}
#endif
