// SPDX-License-Identifier: Apache-2.0
// A key that nobody was admitted to has no ticket: there is nothing to send (R13).
// reason: nobody was admitted: a ticket comes from admit(pid) (R13)
#include <devshare/exported.hpp>

using namespace devshare;

Result<KeyTicket> right(SharedMemoryKey<>& key, BarePid importer) { return key.admit(importer); }

#ifdef DEVSHARE_BAD
void mistake_1(SharedMemoryKey<>& key) { key.ticket(); }
#endif
#ifdef DEVSHARE_BAD
void mistake_2(const SharedMemoryKey<>& key) { key.ticket(Slice{.offset = 64, .size = 64}); }
#endif
#ifdef DEVSHARE_BAD
void mistake_3(SharedMemoryKey<UnownedMemory>& key) { key.ticket(); }
#endif
