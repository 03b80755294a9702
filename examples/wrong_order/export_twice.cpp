// SPDX-License-Identifier: Apache-2.0
// Export one block twice.
// only: clang
// otherwise: at run time the second export returns `closed`.
// expect(clang): argument not in expected state; expected 'unconsumed', observed 'consumed'
#include <devshare/devshare.hpp>

using namespace devshare;

Result<void> share(DeviceMemory memory) {
  DEVSHARE_TRY(key, export_key(std::move(memory)));
  DEVSHARE_TRY(other, export_key(std::move(memory)));
  return {};
}
