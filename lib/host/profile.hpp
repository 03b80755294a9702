// SPDX-License-Identifier: Apache-2.0
// Which product the host runtime plays and every switch of it, read once from the environment at the first call of the
// process (and settable before that by devshare/host.hpp). Immutable while the runtime is initialised.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace devshare::host {

enum class Product : std::uint8_t { a2, a3, training, p310, p950 };

struct Profile {
  Product product = Product::a2;
  std::int32_t device_count = 2;                     // physical devices of the emulated machine, 1..16
  std::uint64_t capacity = std::uint64_t{64} << 30;  // bytes of each device
  std::vector<std::int32_t> visible;                 // ASCEND_RT_VISIBLE_DEVICES: user id -> physical id
  std::vector<std::uint8_t> peers;                   // device_count^2, 1 = row can reach column
  std::uint64_t normal_page = 4096;                  // page sizes of the emulated device, not of the host
  std::uint64_t huge_page = std::uint64_t{2} << 20;
  std::int32_t bare_pid_offset = 0;
  bool bare_pid_by_inode = false;                    // DEVSHARE_HOST_BARE_PID=inode
  bool exporter_death_invalidates = true;            // keys: memory goes with its process
  bool cross_device_copy_allowed = false;            // what some hardware was seen to do against R42
  bool interior_export_allowed = false;              // R10, the lenient reading
  std::uint32_t exporter_deadline_ms = 5000;         // how long an importer waits for an exporter's answer
};

const Profile& profile();

std::string_view product_name(Product product) noexcept;

}  // namespace devshare::host
