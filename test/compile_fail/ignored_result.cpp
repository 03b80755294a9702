// SPDX-License-Identifier: Apache-2.0
// A failure that nobody looks at does not pass for success (B085).
// expect(all): a failure must be looked at: test it, or use DEVSHARE_
#include <devshare/devshare.hpp>

#include <array>

using namespace devshare;

Result<void> right(const Device& device, DeviceMemory& memory, const std::array<std::byte, 16>& bytes) {
  DEVSHARE_CHECK(copy_to_device(device, memory.bytes(), bytes));
  static_cast<void>(device.make_current());  // and who does not care says so
  return {};
}

#if DEVSHARE_BAD == 1
void wrong(const Device& device) { DeviceMemory::allocate(device, 64); }
#endif
#if DEVSHARE_BAD == 2
void wrong(const Device& device, DeviceMemory& memory, const std::array<std::byte, 16>& bytes) {
  copy_to_device(device, memory.bytes(), bytes);
}
#endif
#if DEVSHARE_BAD == 3
void wrong(DeviceMemory memory) { std::move(memory).close(); }
#endif
#if DEVSHARE_BAD == 4
void wrong(SharedMemoryKey<> key) { std::move(key).close(); }
#endif
#if DEVSHARE_BAD == 5
void wrong(SharedMemoryKey<>& key, BarePid importer) { key.admit(importer); }
#endif
#if DEVSHARE_BAD == 6
void wrong(DeviceMemory memory) { export_key(std::move(memory)); }
#endif
#if DEVSHARE_BAD == 7
void wrong(const ReceivedTicket& ticket, const Device& device) { ImportedMapping::open(ticket, device); }
#endif
#if DEVSHARE_BAD == 8
void wrong(const ImportedMapping& mapping) { mapping.check(); }
#endif
#if DEVSHARE_BAD == 9
void wrong(const Device& device) { device.make_current(); }
#endif
#if DEVSHARE_BAD == 10
void wrong() { Runtime::open(); }
#endif
#if DEVSHARE_BAD == 11
void wrong(const Runtime& runtime) { runtime.finalize(); }
#endif
