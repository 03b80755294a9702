// SPDX-License-Identifier: Apache-2.0
// To admit nobody admits nobody: the importer must be named.
// reason: admit nobody: name the process that may import, by its BarePid
#include <devshare/exported.hpp>

using namespace devshare;

Result<KeyTicket> right(SharedMemoryKey<>& key, BarePid importer) { return key.admit(importer); }

#ifdef DEVSHARE_BAD
void mistake(SharedMemoryKey<>& key) { key.admit(); }
#endif
