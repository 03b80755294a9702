// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "exports.hpp"

#include <devshare/devshare.hpp>

#include <cstddef>
#include <utility>
#include <vector>

// Exports `count` blocks into `keys`; how many it became.
inline std::size_t keep_exports(std::vector<devshare::SharedMemoryKey<>>& keys, std::size_t count) {
  using namespace devshare;
  const auto runtime = Runtime::open();
  if (!runtime) return 0;
  const auto device = runtime->device(DeviceId{0});
  if (!device) return 0;
  while (keys.size() < count) {
    auto memory = DeviceMemory::allocate(*device, 4096);
    if (!memory) break;
    auto key = export_key(*std::move(memory));
    if (!key) break;
    keys.push_back(*std::move(key));
  }
  return keys.size();
}
