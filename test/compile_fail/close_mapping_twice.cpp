// SPDX-License-Identifier: Apache-2.0
// What was closed is not closed again: at run time the second close says `closed`, clang says so before.
// only: clang
// expect(clang): invalid invocation of method 'close' on .* while it is in the 'consumed' state
// expect(clang): \[-Werror,-Wconsumed\]
#include <devshare/imported.hpp>

using namespace devshare;

auto right(ImportedMapping mapping) { return std::move(mapping).close(); }

#ifdef DEVSHARE_BAD
void mistake_1(ImportedMapping mapping) {
  static_cast<void>(std::move(mapping).close());
  static_cast<void>(std::move(mapping).close());
}
#endif
#ifdef DEVSHARE_BAD
void mistake_2(Result<ImportedMapping> result) {
  ImportedMapping mapping = *std::move(result);
  static_cast<void>(std::move(mapping).close());
  static_cast<void>(std::move(mapping).close());
}
#endif
