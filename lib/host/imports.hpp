// SPDX-License-Identifier: Apache-2.0
// Keys this process has imported: one entry a key, counted.
#pragma once

#include <cstdint>

namespace devshare::host {

void imports_shut_down();  // aclFinalize: every import ends

struct ImportCounters {
  std::uint64_t keys = 0;         // distinct keys open
  std::uint64_t references = 0;   // opens not yet closed
  std::uint64_t connections = 0;  // exporters connected to
};
ImportCounters import_counters();

}  // namespace devshare::host
