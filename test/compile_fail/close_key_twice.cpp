// SPDX-License-Identifier: Apache-2.0
// What was closed is not closed again: at run time the second close says `closed`, clang says so before.
// only: clang
// expect(clang): invalid invocation of method 'close' on .* while it is in the 'consumed' state
// expect(clang): \[-Werror,-Wconsumed\]
#include <devshare/exported.hpp>

using namespace devshare;

auto right(SharedMemoryKey<> key) { return std::move(key).close(); }

#ifdef DEVSHARE_BAD
void mistake_1(SharedMemoryKey<> key) {
  static_cast<void>(std::move(key).close());
  static_cast<void>(std::move(key).close());
}
#endif
#ifdef DEVSHARE_BAD
void mistake_2(Result<SharedMemoryKey<>> result) {
  SharedMemoryKey<> key = *std::move(result);
  static_cast<void>(std::move(key).close());
  static_cast<void>(std::move(key).close());
}
#endif
