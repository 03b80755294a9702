// SPDX-License-Identifier: Apache-2.0
// What ends an object says so where it is called: by std::move.
// reason: write std::move(access).close(): it ends the grant
#include <devshare/peer.hpp>

using namespace devshare;

auto right(PeerAccess access) { return std::move(access).close(); }

#if DEVSHARE_BAD == 1
void wrong(PeerAccess access) { access.close(); }
#endif
#if DEVSHARE_BAD == 2
void wrong(PeerAccess& access) { access.close(); }
#endif
#if DEVSHARE_BAD == 3
void wrong(Result<PeerAccess>& result) { result->close(); }
#endif
