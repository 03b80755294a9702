// SPDX-License-Identifier: Apache-2.0
// Only a BarePid names a process (R14): getpid(), a number or a device do not (B015).
// reason: only a BarePid names a process: BarePid::from_peer_message(n)
#include <devshare/exported.hpp>

#include <unistd.h>

using namespace devshare;

Result<KeyTicket> right(SharedMemoryKey<>& key, std::int32_t number_in_message) {
  return key.admit(BarePid::from_peer_message(number_in_message));
}

#ifdef DEVSHARE_BAD
void mistake_1(SharedMemoryKey<>& key) { key.admit(::getpid()); }
#endif
#ifdef DEVSHARE_BAD
void mistake_2(SharedMemoryKey<>& key) { key.admit(1234); }
#endif
#ifdef DEVSHARE_BAD
void mistake_3(SharedMemoryKey<>& key) { key.admit(1234u); }
#endif
#ifdef DEVSHARE_BAD
void mistake_4(SharedMemoryKey<>& key) { key.admit(std::int64_t{1234}, Slice{.offset = 0, .size = 64}); }
#endif
#ifdef DEVSHARE_BAD
void mistake_5(SharedMemoryKey<>& key, DeviceId id) { key.admit(id); }
#endif
#ifdef DEVSHARE_BAD
void mistake_6(SharedMemoryKey<>& key, const Device& device) { key.admit(device); }
#endif
#ifdef DEVSHARE_BAD
void mistake_7(SharedMemoryKey<>& key, const Result<BarePid>& pid) { key.admit(pid); }
#endif
#ifdef DEVSHARE_BAD
void mistake_8(SharedMemoryKey<>& key, Slice slice) { key.admit(slice); }
#endif
