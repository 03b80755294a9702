// SPDX-License-Identifier: Apache-2.0
// The key has the memory now, and lends it: key.bytes().
// only: clang
// expect(clang): invalid invocation of method '(bytes|device|size)' on object 'memory' while it is in the 'consumed' state
// expect(clang): \[-Werror,-Wconsumed\]
#include <devshare/exported.hpp>

using namespace devshare;

Result<std::size_t> right(DeviceMemory memory) {
  DEVSHARE_TRY(key, export_key(std::move(memory)));
  return key.bytes().size();
}

#if DEVSHARE_BAD == 1
auto wrong(DeviceMemory memory) {
  auto key = export_key(std::move(memory));
  return memory.bytes();
}
#endif
#if DEVSHARE_BAD == 2
auto wrong(DeviceMemory memory) {
  auto key = export_key(std::move(memory));
  return memory.device();
}
#endif
#if DEVSHARE_BAD == 3
auto wrong(DeviceMemory memory) {
  DeviceMemory other = std::move(memory);
  return memory.size();
}
#endif
#if DEVSHARE_BAD == 4
auto wrong(DeviceMemory memory, DeviceMemory other) {
  other = std::move(memory);
  return memory.size();
}
#endif
