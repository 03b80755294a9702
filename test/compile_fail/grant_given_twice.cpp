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

#ifdef DEVSHARE_BAD
void mistake_1(const ReceivedTicket& ticket, const Device& device, PeerAccess access) {
  auto mapping = ImportedMapping::open(ticket, device, std::move(access));
  auto other = ImportedMapping::open(ticket, device, std::move(access));
}
#endif
#ifdef DEVSHARE_BAD
void mistake_2(const ReceivedTicket& ticket, const Device& device, PeerAccess access) {
  static_cast<void>(std::move(access).close());
  auto mapping = ImportedConstMapping::open(ticket, device, std::move(access));
}
#endif
