// SPDX-License-Identifier: Apache-2.0
// Keys this process has exported: slots, whitelists, the control page that importers watch.
#pragma once

#include "block.hpp"
#include "key.hpp"

#include <cstdint>
#include <memory>

namespace devshare::host {

// The block is being freed: importers lose it now (their watch turns), its keys stay as tombstones until closed. True
// when nothing but messages that nobody has read would keep its bytes.
bool exports_block_freed(std::uint64_t block_id);

// aclFinalize: every export ends, the service thread stops, the endpoint closes.
void exports_shut_down();

struct ExportCounters {
  std::uint64_t keys = 0;         // live export keys
  std::uint64_t connections = 0;  // importers connected
};
ExportCounters export_counters();

// For the importing side of this same process.

// True when a key names this process's endpoint, whether or not there is such a key.
bool is_own_key(const KeyName& name);

// What a key stands for, ready to be given an address.
struct SharedBytes {
  ImportedBytes bytes;
  bool p2p_policy = false;             // allocated for access from other devices (R43)
  std::shared_ptr<const void> keeper;  // of what `bytes.watch` points to: lives as long as the import
};

// Opens an own key without a socket, where the product allows it: never while pids are validated, except on 950.
acl::aclError open_own_key(const KeyName& name, SharedBytes* out);

// Ends an own key: importers lose the memory now (R20). False when there is no such key.
bool close_own_key(const KeyName& name);

}  // namespace devshare::host
