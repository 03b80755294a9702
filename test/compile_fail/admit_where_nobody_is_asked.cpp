// SPDX-License-Identifier: Apache-2.0
// An export whose runtime asks nobody has no list to admit to (R13).
// reason: this export asks nobody (R13): take ticket()
#include <devshare/exported.hpp>

using namespace devshare;

using OpenKey = SharedMemoryKey<DeviceMemory, Unrestricted>;
Result<KeyTicket> right(const OpenKey& key) { return key.ticket(); }

#ifdef DEVSHARE_BAD
void mistake_1(OpenKey& key, BarePid importer) { key.admit(importer); }
#endif
#ifdef DEVSHARE_BAD
void mistake_2(OpenKey& key, BarePid importer) { key.admit(importer, Slice{.offset = 0, .size = 64}); }
#endif
#ifdef DEVSHARE_BAD
void mistake_3(OpenKey& key, std::span<const BarePid> importers) { key.admit(importers); }
#endif
#ifdef DEVSHARE_BAD
void mistake_4(OpenKey& key) { key.admit(); }
#endif
#ifdef DEVSHARE_BAD
void mistake_5(OpenKey& key) { key.admit(1234); }
#endif
