// SPDX-License-Identifier: Apache-2.0
// Every call that needs a device takes one that exists, never its id, a number or a pid.
// expect(gcc): cannot convert|could not convert|no matching function|invalid initialization of reference
// expect(clang): no matching function|no viable conversion|could not bind
#include <devshare/devshare.hpp>

using namespace devshare;

auto right(const Device& device, const Device& other) {
  static_cast<void>(PeerAccess::both_ways(device, other));
  return DeviceMemory::allocate(device, 64);
}

#ifdef DEVSHARE_BAD
void mistake_1(DeviceId id) { static_cast<void>(DeviceMemory::allocate(id, 64)); }
#endif
#ifdef DEVSHARE_BAD
void mistake_2() { static_cast<void>(DeviceMemory::allocate(0, 64)); }
#endif
#ifdef DEVSHARE_BAD
void mistake_3(BarePid pid) { static_cast<void>(DeviceMemory::allocate(pid, 64)); }
#endif
#ifdef DEVSHARE_BAD
void mistake_4(const ReceivedTicket& ticket, DeviceId id) { static_cast<void>(ImportedMapping::open(ticket, id)); }
#endif
#ifdef DEVSHARE_BAD
void mistake_5(const ReceivedTicket& ticket) { static_cast<void>(ImportedMapping::open(ticket, 1)); }
#endif
#ifdef DEVSHARE_BAD
void mistake_6(const ReceivedTicket& ticket, BarePid pid) { static_cast<void>(ImportedMapping::open(ticket, pid)); }
#endif
#ifdef DEVSHARE_BAD
void mistake_7(DeviceId one, DeviceId other) { static_cast<void>(PeerAccess::both_ways(one, other)); }
#endif
#ifdef DEVSHARE_BAD
void mistake_8(const Device& device) { static_cast<void>(PeerAccess::half(device, 1)); }
#endif
#ifdef DEVSHARE_BAD
void mistake_9() { static_cast<void>(can_access_peer(0, 1)); }
#endif
#ifdef DEVSHARE_BAD
void mistake_10(DeviceId id, DeviceSpan<std::byte> block) {
  static_cast<void>(UnownedMemory::promise_outlives(id, block));
}
#endif
