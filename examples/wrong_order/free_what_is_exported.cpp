// SPDX-License-Identifier: Apache-2.0
// Free memory that its importers still read (R22).
// only: clang
// otherwise: at run time the close returns `closed` and frees nothing.
// expect(clang): invalid invocation of method 'close' .* 'consumed' state
#include <devshare/devshare.hpp>

using namespace devshare;

Result<KeyTicket> share(DeviceMemory memory, BarePid importer) {
  DEVSHARE_TRY(key, export_key(std::move(memory)));
  DEVSHARE_CHECK(std::move(memory).close());
  return key.admit(importer);
}
