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

#ifdef DEVSHARE_BAD
void mistake_1(DeviceMemory memory) {
  auto key = export_key(std::move(memory));
  static_cast<void>(std::move(memory).close());
}
#endif
#ifdef DEVSHARE_BAD
Result<void> mistake_2(const Device& device) {
  DEVSHARE_TRY(memory, DeviceMemory::allocate(device, 64));
  DEVSHARE_TRY(key, export_key_unrestricted(std::move(memory)));
  return std::move(memory).close();
}
#endif
