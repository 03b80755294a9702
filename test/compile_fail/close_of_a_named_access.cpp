// SPDX-License-Identifier: Apache-2.0
// What ends an object says so where it is called: by std::move.
// reason: write std::move(access).close(): it ends the grant
#include <devshare/peer.hpp>

using namespace devshare;

auto right(PeerAccess access) { return std::move(access).close(); }

#ifdef DEVSHARE_BAD
void mistake_1(PeerAccess access) { access.close(); }
#endif
#ifdef DEVSHARE_BAD
void mistake_2(PeerAccess& access) { access.close(); }
#endif
#ifdef DEVSHARE_BAD
void mistake_3(Result<PeerAccess>& result) { result->close(); }
#endif
