// SPDX-License-Identifier: Apache-2.0
// Memory that was imported to be read is not written.
// reason: the device memory is read-only
#include <devshare/copy.hpp>
#include <devshare/imported.hpp>

#include <array>

using namespace devshare;

auto right(const Device& device, const ImportedConstMapping& mapping) {
  std::array<std::byte, 16> bytes{};
  return copy_to_host(device, bytes, mapping.bytes().first(16));
}

#if DEVSHARE_BAD == 1
auto wrong(const Device& device, const ImportedConstMapping& mapping) {
  const std::array<std::byte, 16> bytes{};
  return copy_to_device(device, mapping.bytes(), bytes);
}
#endif
#if DEVSHARE_BAD == 2
auto wrong(const Device& device, const ImportedConstMapping& mapping, DeviceMemory& memory) {
  return copy_on_device(device, mapping.bytes(), memory.bytes());
}
#endif
