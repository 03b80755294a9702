// SPDX-License-Identifier: Apache-2.0
// What was closed is not closed again: at run time the second close says `closed`, clang says so before.
// only: clang
// expect(clang): invalid invocation of method 'close' on .* while it is in the 'consumed' state
// expect(clang): \[-Werror,-Wconsumed\]
#include <devshare/exported.hpp>

using namespace devshare;

auto right(SharedMemoryKey<> key) { return std::move(key).close(); }

#if DEVSHARE_BAD == 1
void wrong(SharedMemoryKey<> key) {
  static_cast<void>(std::move(key).close());
  static_cast<void>(std::move(key).close());
}
#endif
#if DEVSHARE_BAD == 2
void wrong(Result<SharedMemoryKey<>> result) {
  SharedMemoryKey<> key = *std::move(result);
  static_cast<void>(std::move(key).close());
  static_cast<void>(std::move(key).close());
}
#endif
