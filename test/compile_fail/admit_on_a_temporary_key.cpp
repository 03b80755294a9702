// SPDX-License-Identifier: Apache-2.0
// The key would be closed before its ticket arrives anywhere.
// reason: the key would end before its ticket is used: keep it in a named object
#include <devshare/exported.hpp>

using namespace devshare;

Result<KeyTicket> right(SharedMemoryKey<>& key, BarePid importer) { return key.admit(importer); }
SharedMemoryKey<> made();

#ifdef DEVSHARE_BAD
void mistake_1(BarePid importer) { made().admit(importer); }
#endif
#ifdef DEVSHARE_BAD
void mistake_2(DeviceMemory memory, BarePid importer) { (*export_key(std::move(memory))).admit(importer); }
#endif
#ifdef DEVSHARE_BAD
void mistake_3(SharedMemoryKey<>& key, BarePid importer) { std::move(key).admit(importer); }
#endif
