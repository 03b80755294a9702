// SPDX-License-Identifier: Apache-2.0
// The key owns the memory: freeing it behind the key is what R22 is about.
// only: clang
// expect(clang): invalid invocation of method 'close' on .* while it is in the 'consumed' state
// expect(clang): \[-Werror,-Wconsumed\]
#include <devshare/exported.hpp>

using namespace devshare;

Result<void> right(DeviceMemory memory) {
  DEVSHARE_TRY(key, export_key(std::move(memory)));
  DEVSHARE_TRY(back, std::move(key).close());
  return std::move(back).close();
}

#if DEVSHARE_BAD == 1
void wrong(DeviceMemory memory) {
  auto key = export_key(std::move(memory));
  static_cast<void>(std::move(memory).close());
}
#endif
#if DEVSHARE_BAD == 2
Result<void> wrong(const Device& device) {
  DEVSHARE_TRY(memory, DeviceMemory::allocate(device, 64));
  DEVSHARE_TRY(key, export_key_unrestricted(std::move(memory)));
  return std::move(memory).close();
}
#endif
