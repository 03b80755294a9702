// SPDX-License-Identifier: Apache-2.0
// Export from the middle of a block: a key is of the whole block (R10). Importers are admitted to a Slice of it.
// reason: a key needs memory of aclrtMalloc that this process owns (R10, R12)
#include <devshare/devshare.hpp>

using namespace devshare;

auto share_a_part(DeviceMemory& memory) { return export_key(memory.bytes().subspan(4096, 4096)); }
