// SPDX-License-Identifier: Apache-2.0
// A ticket proves that somebody was admitted: only an export can make one, and bytes from elsewhere are none.
// expect(gcc): is private within this context
// expect(clang): private constructor
#include <devshare/exported.hpp>

using namespace devshare;

Result<KeyTicket> right(SharedMemoryKey<>& key, BarePid importer) { return key.admit(importer); }

#ifdef DEVSHARE_BAD
KeyTicket mistake_1(const TicketBytes& bytes) { return KeyTicket(bytes); }
#endif
#ifdef DEVSHARE_BAD
auto mistake_2() { return KeyTicket(TicketBytes{}); }
#endif
#ifdef DEVSHARE_BAD
struct Mine : KeyTicket {
  explicit Mine(const TicketBytes& bytes) : KeyTicket(bytes) {}
};
#endif
