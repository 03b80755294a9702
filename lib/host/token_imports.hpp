// SPDX-License-Identifier: Apache-2.0
// Handles this process has imported, by the name in their token: a token pairs with one handle in a process (R27).
#pragma once

#include <cstdint>

namespace devshare::host {

void token_imports_shut_down();  // aclFinalize: what was imported is forgotten; the handles end by themselves

std::uint64_t handles_imported();  // whose memory is there

}  // namespace devshare::host
