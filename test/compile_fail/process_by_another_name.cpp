// SPDX-License-Identifier: Apache-2.0
// Only a BarePid names a process (R14): getpid(), a number or a device do not (B015).
// reason: only a BarePid names a process: BarePid::from_peer_message(n)
#include <devshare/exported.hpp>

#include <unistd.h>

using namespace devshare;

Result<KeyTicket> right(SharedMemoryKey<>& key, std::int32_t number_in_message) {
  return key.admit(BarePid::from_peer_message(number_in_message));
}

#if DEVSHARE_BAD == 1
void wrong(SharedMemoryKey<>& key) { key.admit(::getpid()); }
#endif
#if DEVSHARE_BAD == 2
void wrong(SharedMemoryKey<>& key) { key.admit(1234); }
#endif
#if DEVSHARE_BAD == 3
void wrong(SharedMemoryKey<>& key) { key.admit(1234u); }
#endif
#if DEVSHARE_BAD == 4
void wrong(SharedMemoryKey<>& key) { key.admit(std::int64_t{1234}, Slice{.offset = 0, .size = 64}); }
#endif
#if DEVSHARE_BAD == 5
void wrong(SharedMemoryKey<>& key, DeviceId id) { key.admit(id); }
#endif
#if DEVSHARE_BAD == 6
void wrong(SharedMemoryKey<>& key, const Device& device) { key.admit(device); }
#endif
#if DEVSHARE_BAD == 7
void wrong(SharedMemoryKey<>& key, const Result<BarePid>& pid) { key.admit(pid); }
#endif
#if DEVSHARE_BAD == 8
void wrong(SharedMemoryKey<>& key, Slice slice) { key.admit(slice); }
#endif
