// SPDX-License-Identifier: Apache-2.0
// The value ends with the temporary that holds it.
// reason: the value ends with the temporary Result: unwrap it into a named object first
#include <devshare/exported.hpp>

using namespace devshare;

Result<std::size_t> right(const Device& device) {
  DEVSHARE_TRY(memory, DeviceMemory::allocate(device, 64));
  return memory.bytes().size();
}

#ifdef DEVSHARE_BAD
auto mistake_1(const Device& device) { return DeviceMemory::allocate(device, 64)->bytes(); }
#endif
#ifdef DEVSHARE_BAD
auto mistake_2(Result<DeviceMemory>& result) { return std::move(result)->bytes(); }
#endif
#ifdef DEVSHARE_BAD
auto mistake_3(DeviceMemory memory, BarePid importer) { return export_key(std::move(memory))->admit(importer); }
#endif
