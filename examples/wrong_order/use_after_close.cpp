// SPDX-License-Identifier: Apache-2.0
// Read memory whose import was closed.
// only: clang
// otherwise: at run time the view is empty.
// expect(clang): invalid invocation of method 'bytes' on object 'mapping' while it is in the 'consumed' state
#include <devshare/devshare.hpp>

using namespace devshare;

Result<void> finish(ImportedMapping mapping, const Device& device, std::span<std::byte> to) {
  DEVSHARE_CHECK(std::move(mapping).close());
  return copy_to_host(device, to, mapping.bytes());
}
