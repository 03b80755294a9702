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

#ifdef DEVSHARE_BAD
void mistake_1(const Device& device) { DeviceMemory::allocate(device, 64); }
#endif
#ifdef DEVSHARE_BAD
void mistake_2(const Device& device, DeviceMemory& memory, const std::array<std::byte, 16>& bytes) {
  copy_to_device(device, memory.bytes(), bytes);
}
#endif
#ifdef DEVSHARE_BAD
void mistake_3(DeviceMemory memory) { std::move(memory).close(); }
#endif
#ifdef DEVSHARE_BAD
void mistake_4(SharedMemoryKey<> key) { std::move(key).close(); }
#endif
#ifdef DEVSHARE_BAD
void mistake_5(SharedMemoryKey<>& key, BarePid importer) { key.admit(importer); }
#endif
#ifdef DEVSHARE_BAD
void mistake_6(DeviceMemory memory) { export_key(std::move(memory)); }
#endif
#ifdef DEVSHARE_BAD
void mistake_7(const ReceivedTicket& ticket, const Device& device) { ImportedMapping::open(ticket, device); }
#endif
#ifdef DEVSHARE_BAD
void mistake_8(const ImportedMapping& mapping) { mapping.check(); }
#endif
#ifdef DEVSHARE_BAD
void mistake_9(const Device& device) { device.make_current(); }
#endif
#ifdef DEVSHARE_BAD
void mistake_10() { Runtime::open(); }
#endif
#ifdef DEVSHARE_BAD
void mistake_11(const Runtime& runtime) { runtime.finalize(); }
#endif
