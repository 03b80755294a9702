// SPDX-License-Identifier: Apache-2.0
// Go on as if it had worked.
// expect(all): a failure must be looked at: test it, or use DEVSHARE_
#include <devshare/devshare.hpp>

using namespace devshare;

void load(const Device& device, DeviceMemory& memory, std::span<const std::byte> bytes) {
  copy_to_device(device, memory.bytes(), bytes);
}
