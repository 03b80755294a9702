// SPDX-License-Identifier: Apache-2.0
// An export whose runtime asks nobody has no list to admit to (R13).
// reason: this export asks nobody (R13): take ticket()
#include <devshare/exported.hpp>

using namespace devshare;

using OpenKey = SharedMemoryKey<DeviceMemory, Unrestricted>;
Result<KeyTicket> right(const OpenKey& key) { return key.ticket(); }

#if DEVSHARE_BAD == 1
void wrong(OpenKey& key, BarePid importer) { key.admit(importer); }
#endif
#if DEVSHARE_BAD == 2
void wrong(OpenKey& key, BarePid importer) { key.admit(importer, Slice{.offset = 0, .size = 64}); }
#endif
#if DEVSHARE_BAD == 3
void wrong(OpenKey& key, std::span<const BarePid> importers) { key.admit(importers); }
#endif
#if DEVSHARE_BAD == 4
void wrong(OpenKey& key) { key.admit(); }
#endif
#if DEVSHARE_BAD == 5
void wrong(OpenKey& key) { key.admit(1234); }
#endif
