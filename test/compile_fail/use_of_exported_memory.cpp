// SPDX-License-Identifier: Apache-2.0
// The key has the memory now, and lends it: key.bytes().
// only: clang
// expect(clang): invalid invocation of method '(bytes|device|size)' on object 'memory' .* 'consumed' state
// expect(clang): \[-Werror,-Wconsumed\]
#include <devshare/exported.hpp>

using namespace devshare;

Result<std::size_t> right(DeviceMemory memory) {
  DEVSHARE_TRY(key, export_key(std::move(memory)));
  return key.bytes().size();
}

#ifdef DEVSHARE_BAD
auto mistake_1(DeviceMemory memory) {
  auto key = export_key(std::move(memory));
  return memory.bytes();
}
#endif
#ifdef DEVSHARE_BAD
auto mistake_2(DeviceMemory memory) {
  auto key = export_key(std::move(memory));
  return memory.device();
}
#endif
#ifdef DEVSHARE_BAD
auto mistake_3(DeviceMemory memory) {
  DeviceMemory other = std::move(memory);
  return memory.size();
}
#endif
#ifdef DEVSHARE_BAD
auto mistake_4(DeviceMemory memory, DeviceMemory other) {
  other = std::move(memory);
  return memory.size();
}
#endif
