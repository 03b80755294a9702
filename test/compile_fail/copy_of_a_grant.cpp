// SPDX-License-Identifier: Apache-2.0
// A grant of peer access is counted, and each object is one.
// reason: one owner: std::move it
#include <devshare/peer.hpp>

using namespace devshare;

PeerAccess right(PeerAccess access) { return access; }

#ifdef DEVSHARE_BAD
void mistake_1(const PeerAccess& access) { PeerAccess other{access}; }
#endif
#ifdef DEVSHARE_BAD
void mistake_2(PeerAccess& to, const PeerAccess& from) { to = from; }
#endif
