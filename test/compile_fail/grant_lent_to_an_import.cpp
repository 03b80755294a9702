// SPDX-License-Identifier: Apache-2.0
// A mapping keeps the grant alive that it was opened with, so it must be given it.
// reason: one owner: std::move it
#include <devshare/imported.hpp>

using namespace devshare;

auto right(const ReceivedTicket& ticket, const Device& device, PeerAccess access) {
  return ImportedMapping::open(ticket, device, std::move(access));
}

#ifdef DEVSHARE_BAD
auto mistake(const ReceivedTicket& ticket, const Device& device, PeerAccess& access) {
  return ImportedMapping::open(ticket, device, access);
}
#endif
