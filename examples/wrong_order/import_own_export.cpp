// SPDX-License-Identifier: Apache-2.0
// Import in the process that exported: the runtime refuses it, and there is no need for it.
// reason: a process cannot import what it exported
#include <devshare/devshare.hpp>

using namespace devshare;

Result<ImportedMapping> share_with_myself(SharedMemoryKey<>& key, BarePid me, const Device& device) {
  DEVSHARE_TRY(ticket, key.admit(me));
  return ImportedMapping::open(ticket, device);
}
