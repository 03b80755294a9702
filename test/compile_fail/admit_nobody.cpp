// SPDX-License-Identifier: Apache-2.0
// To admit nobody admits nobody: the importer must be named.
// reason: admit nobody: name the process that may import, by its BarePid
#include <devshare/exported.hpp>

using namespace devshare;

Result<KeyTicket> right(SharedMemoryKey<>& key, BarePid importer) { return key.admit(importer); }
Result<KeyTicket> right(SharedMemoryKey<>& key, BarePid a, BarePid b) {
  const BarePid both[] = {a, b};
  return key.admit(both, {0, 16});
}

#ifdef DEVSHARE_BAD
void mistake_1(SharedMemoryKey<>& key) { key.admit(); }
#endif
#ifdef DEVSHARE_BAD
void mistake_2(SharedMemoryKey<>& key) { key.admit({}); }
#endif
#ifdef DEVSHARE_BAD
void mistake_3(SharedMemoryKey<>& key) { key.admit({}, Slice{0, 16}); }
#endif
#ifdef DEVSHARE_BAD
void mistake_4(SharedMemoryKey<>& key) { key.admit(nullptr); }
#endif
