// SPDX-License-Identifier: Apache-2.0
// Every call that needs a device takes one that exists, never its id, a number or a pid.
// expect(gcc): cannot convert|could not convert|no matching function|invalid initialization of reference|no known conversion
// expect(clang): no matching function|no viable conversion|no known conversion
#include <devshare/devshare.hpp>

using namespace devshare;

auto right(const Device& device, const Device& other) {
  static_cast<void>(PeerAccess::both_ways(device, other));
  return DeviceMemory::allocate(device, 64);
}

#if DEVSHARE_BAD == 1
void wrong(DeviceId id) { static_cast<void>(DeviceMemory::allocate(id, 64)); }
#endif
#if DEVSHARE_BAD == 2
void wrong() { static_cast<void>(DeviceMemory::allocate(0, 64)); }
#endif
#if DEVSHARE_BAD == 3
void wrong(BarePid pid) { static_cast<void>(DeviceMemory::allocate(pid, 64)); }
#endif
#if DEVSHARE_BAD == 4
void wrong(const ReceivedTicket& ticket, DeviceId id) { static_cast<void>(ImportedMapping::open(ticket, id)); }
#endif
#if DEVSHARE_BAD == 5
void wrong(const ReceivedTicket& ticket) { static_cast<void>(ImportedMapping::open(ticket, 1)); }
#endif
#if DEVSHARE_BAD == 6
void wrong(const ReceivedTicket& ticket, BarePid pid) { static_cast<void>(ImportedMapping::open(ticket, pid)); }
#endif
#if DEVSHARE_BAD == 7
void wrong(DeviceId one, DeviceId other) { static_cast<void>(PeerAccess::both_ways(one, other)); }
#endif
#if DEVSHARE_BAD == 8
void wrong(const Device& device) { static_cast<void>(PeerAccess::half(device, 1)); }
#endif
#if DEVSHARE_BAD == 9
void wrong() { static_cast<void>(can_access_peer(0, 1)); }
#endif
#if DEVSHARE_BAD == 10
void wrong(DeviceId id, DeviceSpan<std::byte> block) { static_cast<void>(UnownedMemory::promise_outlives(id, block)); }
#endif
