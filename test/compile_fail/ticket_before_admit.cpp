// SPDX-License-Identifier: Apache-2.0
// A key that nobody was admitted to has no ticket: there is nothing to send (R13).
// reason: nobody was admitted: a ticket comes from admit(pid) (R13)
#include <devshare/exported.hpp>

using namespace devshare;

Result<KeyTicket> right(SharedMemoryKey<>& key, BarePid importer) { return key.admit(importer); }

#if DEVSHARE_BAD == 1
void wrong(SharedMemoryKey<>& key) { key.ticket(); }
#endif
#if DEVSHARE_BAD == 2
void wrong(const SharedMemoryKey<>& key) { key.ticket(Slice{.offset = 64, .size = 64}); }
#endif
#if DEVSHARE_BAD == 3
void wrong(SharedMemoryKey<UnownedMemory>& key) { key.ticket(); }
#endif
