// SPDX-License-Identifier: Apache-2.0
// Write to memory that was opened to be read.
// reason: the device memory is read-only
#include <devshare/devshare.hpp>

using namespace devshare;

auto overwrite(const ImportedConstMapping& mapping, const Device& device, std::span<const std::byte> bytes) {
  return copy_to_device(device, mapping.bytes(), bytes);
}
