// SPDX-License-Identifier: Apache-2.0
// Keys this process has exported: slots, whitelists, the control page that importers watch.
#pragma once

#include <cstdint>

namespace devshare::host {

// The block is being freed: importers lose it now (their watch turns), its keys stay as tombstones until closed.
void exports_block_freed(std::uint64_t block_id);

// aclFinalize: every export ends, the service thread stops, the endpoint closes.
void exports_shut_down();

struct ExportCounters {
  std::uint64_t keys = 0;         // live export keys
  std::uint64_t connections = 0;  // importers connected
};
ExportCounters export_counters();

}  // namespace devshare::host
