// SPDX-License-Identifier: Apache-2.0
// Memory that was imported to be read is not written.
// reason: the device memory is read-only
#include <devshare/copy.hpp>
#include <devshare/imported.hpp>
#include <devshare/memory.hpp>

#include <array>

using namespace devshare;

auto right(const Device& device, const ImportedConstMapping& mapping) {
  std::array<std::byte, 16> bytes{};
  return copy_to_host(device, bytes, mapping.bytes().first(16));
}

#ifdef DEVSHARE_BAD
auto mistake_1(const Device& device, const ImportedConstMapping& mapping) {
  const std::array<std::byte, 16> bytes{};
  return copy_to_device(device, mapping.bytes(), bytes);
}
#endif
#ifdef DEVSHARE_BAD
auto mistake_2(const Device& device, const ImportedConstMapping& mapping, DeviceMemory& memory) {
  return copy_on_device(device, mapping.bytes(), memory.bytes());
}
#endif
