// SPDX-License-Identifier: Apache-2.0
// A mapping keeps the grant it was opened with: another needs another.
// only: clang
// expect(clang): argument not in expected state; expected 'unconsumed', observed 'consumed'
// expect(clang): \[-Werror,-Wconsumed\]
#include <devshare/imported.hpp>

using namespace devshare;

auto right(const ReceivedTicket& ticket, const Device& device, PeerAccess access) {
  return ImportedMapping::open(ticket, device, std::move(access));
}

#if DEVSHARE_BAD == 1
void wrong(const ReceivedTicket& ticket, const Device& device, PeerAccess access) {
  auto mapping = ImportedMapping::open(ticket, device, std::move(access));
  auto other = ImportedMapping::open(ticket, device, std::move(access));
}
#endif
#if DEVSHARE_BAD == 2
void wrong(const ReceivedTicket& ticket, const Device& device, PeerAccess access) {
  static_cast<void>(std::move(access).close());
  auto mapping = ImportedConstMapping::open(ticket, device, std::move(access));
}
#endif
