// SPDX-License-Identifier: Apache-2.0
// One block, one key.
// only: clang
// expect(clang): argument not in expected state; expected 'unconsumed', observed 'consumed'
// expect(clang): \[-Werror,-Wconsumed\]
#include <devshare/exported.hpp>

using namespace devshare;

auto right(DeviceMemory memory) { return export_key(std::move(memory)); }

#ifdef DEVSHARE_BAD
void mistake_1(DeviceMemory memory) {
  auto key = export_key(std::move(memory));
  auto other = export_key(std::move(memory));
}
#endif
#ifdef DEVSHARE_BAD
void mistake_2(DeviceMemory memory) {
  auto key = export_key(std::move(memory));
  auto other = export_key_unrestricted(std::move(memory));
}
#endif
#ifdef DEVSHARE_BAD
void mistake_3(DeviceMemory memory) {
  static_cast<void>(std::move(memory).close());
  auto key = export_key(std::move(memory));
}
#endif
