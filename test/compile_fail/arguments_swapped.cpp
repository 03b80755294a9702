// SPDX-License-Identifier: Apache-2.0
// Two arguments of one call never change places: each pair of kinds, the size too, is two types (B097). Every other
// pair in every other call is in test/unit/core_classes.cpp.
// expect(gcc): cannot convert|could not convert|no matching function|invalid initialization of reference
// expect(clang): no matching (member )?function|no viable conversion|could not bind
#include <devshare/devshare.hpp>

using namespace devshare;

auto right(const Device& device, const ReceivedTicket& ticket) {
  static_cast<void>(ImportedMapping::open(ticket, device));
  return DeviceMemory::allocate(device, 64);
}

#ifdef DEVSHARE_BAD
void mistake_1(const Device& device) { static_cast<void>(DeviceMemory::allocate(64, device)); }
#endif
#ifdef DEVSHARE_BAD
void mistake_2(const Device& device, const ReceivedTicket& ticket) {
  static_cast<void>(ImportedMapping::open(device, ticket));
}
#endif
#ifdef DEVSHARE_BAD
void mistake_3(const Device& device, DeviceSpan<std::byte> block) {
  static_cast<void>(UnownedMemory::promise_outlives(block, device));
}
#endif
#ifdef DEVSHARE_BAD
void mistake_4(SharedMemoryKey<>& key, BarePid importer) { static_cast<void>(key.admit(Slice{}, importer)); }
#endif
#ifdef DEVSHARE_BAD
void mistake_5(const Device& device) { static_cast<void>(DeviceMemory::allocate(device, Placement{}, 64)); }
#endif
#ifdef DEVSHARE_BAD
void mistake_6(const Device& device, PeerAccess access, const ReceivedTicket& ticket) {
  static_cast<void>(ImportedMapping::open(ticket, std::move(access), device));
}
#endif
