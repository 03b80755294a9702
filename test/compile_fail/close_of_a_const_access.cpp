// SPDX-License-Identifier: Apache-2.0
// Closing ends an object, so it takes one that may change and that nothing else still holds: a Result would go
// on holding what is left of it.
// reason: const, or still inside a Result: make a named object of it first, then close that
#include <devshare/peer.hpp>

using namespace devshare;

auto right(Result<PeerAccess> result) {
  PeerAccess access = *std::move(result);
  return std::move(access).close();
}

#ifdef DEVSHARE_BAD
void mistake_1(const PeerAccess& access) { access.close(); }
#endif
#ifdef DEVSHARE_BAD
void mistake_2(const PeerAccess& access) { std::move(access).close(); }
#endif
#ifdef DEVSHARE_BAD
void mistake_3(Result<PeerAccess>& result) { (*result).close(); }
#endif
#ifdef DEVSHARE_BAD
void mistake_4(Result<PeerAccess>& result) { std::move(*result).close(); }
#endif
#ifdef DEVSHARE_BAD
void mistake_5(Result<PeerAccess>& result) { result.value().close(); }
#endif
