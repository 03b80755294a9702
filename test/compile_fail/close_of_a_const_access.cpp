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

#if DEVSHARE_BAD == 1
void wrong(const PeerAccess& access) { access.close(); }
#endif
#if DEVSHARE_BAD == 2
void wrong(const PeerAccess& access) { std::move(access).close(); }
#endif
#if DEVSHARE_BAD == 3
void wrong(Result<PeerAccess>& result) { (*result).close(); }
#endif
#if DEVSHARE_BAD == 4
void wrong(Result<PeerAccess>& result) { std::move(*result).close(); }
#endif
#if DEVSHARE_BAD == 5
void wrong(Result<PeerAccess>& result) { result.value().close(); }
#endif
