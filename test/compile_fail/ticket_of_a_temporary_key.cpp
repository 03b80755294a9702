// SPDX-License-Identifier: Apache-2.0
// The key would be closed before its ticket arrives anywhere.
// reason: the key would end before its ticket is used: keep it in a named object
#include <devshare/exported.hpp>

using namespace devshare;

using OpenKey = SharedMemoryKey<DeviceMemory, Unrestricted>;
Result<KeyTicket> right(const OpenKey& key) { return key.ticket(); }
OpenKey made();

#ifdef DEVSHARE_BAD
void mistake_1() { made().ticket(); }
#endif
#ifdef DEVSHARE_BAD
void mistake_2(DeviceMemory memory) { (*export_key_unrestricted(std::move(memory))).ticket(); }
#endif
