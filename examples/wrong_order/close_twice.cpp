// SPDX-License-Identifier: Apache-2.0
// Close an import twice: the second close ends what another part of the program has open, or fails (R24).
// only: clang
// otherwise: at run time the second close returns `closed` and closes nothing.
// expect(clang): invalid invocation of method 'close' .* 'consumed' state
#include <devshare/devshare.hpp>

using namespace devshare;

Result<void> finish(ImportedMapping mapping) {
  DEVSHARE_CHECK(std::move(mapping).close());
  return std::move(mapping).close();
}
