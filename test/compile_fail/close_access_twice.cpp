// SPDX-License-Identifier: Apache-2.0
// What was closed is not closed again: at run time the second close says `closed`, clang says so before.
// only: clang
// expect(clang): invalid invocation of method 'close' on .* while it is in the 'consumed' state
// expect(clang): \[-Werror,-Wconsumed\]
#include <devshare/peer.hpp>

using namespace devshare;

auto right(PeerAccess access) { return std::move(access).close(); }

#ifdef DEVSHARE_BAD
void mistake_1(PeerAccess access) {
  static_cast<void>(std::move(access).close());
  static_cast<void>(std::move(access).close());
}
#endif
#ifdef DEVSHARE_BAD
void mistake_2(Result<PeerAccess> result) {
  PeerAccess access = *std::move(result);
  static_cast<void>(std::move(access).close());
  static_cast<void>(std::move(access).close());
}
#endif
