// SPDX-License-Identifier: Apache-2.0
// Whoever owns something of the runtime closes it, so there is one.
// reason: one owner: std::move it
#include <devshare/exported.hpp>
#include <devshare/imported.hpp>

using namespace devshare;

DeviceMemory right(DeviceMemory memory) { return memory; }

#if DEVSHARE_BAD == 1
DeviceMemory wrong(DeviceMemory& memory) { return memory; }
#endif
#if DEVSHARE_BAD == 2
void wrong(const SharedMemoryKey<>& key) { SharedMemoryKey<> other = key; }
#endif
#if DEVSHARE_BAD == 3
void wrong(const ImportedMapping& mapping) { ImportedMapping other(mapping); }
#endif
#if DEVSHARE_BAD == 4
void wrong(const PeerAccess& access) { PeerAccess other{access}; }
#endif
#if DEVSHARE_BAD == 5
void wrong(DeviceMemory& to, const DeviceMemory& from) { to = from; }
#endif
#if DEVSHARE_BAD == 6
void wrong(ImportedMapping& to, const ImportedMapping& from) { to = from; }
#endif
#if DEVSHARE_BAD == 7
void wrong(PeerAccess& to, const PeerAccess& from) { to = from; }
#endif
#if DEVSHARE_BAD == 8
void wrong(SharedMemoryKey<>& to, const SharedMemoryKey<>& from) { to = from; }
#endif
#if DEVSHARE_BAD == 9
auto wrong(const ReceivedTicket& ticket, const Device& device, PeerAccess& access) {
  return ImportedMapping::open(ticket, device, access);
}
#endif
