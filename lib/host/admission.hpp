// SPDX-License-Identifier: Apache-2.0
// Whether an exporter serves a peer, keys and tokens alike.
#pragma once

#include "peer_identity.hpp"
#include "whitelist.hpp"
#include "wire.hpp"

namespace devshare::host {

// True when the list lets the peer in. Else `reply` gets the reason and what the importer needs to explain it, and its
// code is the caller's.
bool admits(const Whitelist& list, const Request& request, const Peer& peer, Reply* reply) noexcept;

}  // namespace devshare::host
