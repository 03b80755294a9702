// SPDX-License-Identifier: Apache-2.0
// Return a view of an import that ends with the function.
// only: clang
// otherwise: nobody sees it at run time: the view is of addresses at which nothing is any more.
// expect(clang): stack memory associated with local variable 'mapping' returned
#include <devshare/devshare.hpp>

using namespace devshare;

DeviceSpan<std::byte> memory_of(Result<ImportedMapping> opened) {
  ImportedMapping mapping = *std::move(opened);
  return mapping.bytes();
}
