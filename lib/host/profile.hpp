// SPDX-License-Identifier: Apache-2.0
// Which product the host runtime plays, and every switch of it. Read from the environment (DEVSHARE_HOST_*,
// ASCEND_RT_VISIBLE_DEVICES) and from devshare/host.hpp at the first call of the process and again by every aclInit
// that starts a session; immutable while the runtime is initialised.
#pragma once

#include "releases.hpp"

#include <devshare/acl/table.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace devshare::host {

enum class Product : std::uint8_t { a2, a3, training, p310, p950 };

inline constexpr std::int32_t max_devices = 16;

// A fault or a delay asked for by the environment; instrument.hpp keeps the armed ones.
struct FaultSwitch {
  acl::Entry call = acl::Entry::none;
  std::uint32_t nth = 0;  // 1 is the next call, 0 every call
  acl::aclError code = 0;
  double probability = 0;  // with which each call fails; 0: the nth
  std::uint64_t seed = 0;
  bool operator==(const FaultSwitch&) const = default;
};
struct DelaySwitch {
  acl::Entry call = acl::Entry::none;
  std::uint32_t milliseconds = 0;
  bool operator==(const DelaySwitch&) const = default;
};

struct Profile {
  Product product = Product::a2;
  Release interface = newest_release;                // calls that came later are not there
  std::int32_t device_count = 2;                     // physical devices of the emulated machine, 1..max_devices
  std::uint64_t capacity = std::uint64_t{64} << 30;  // bytes of each device
  std::vector<std::int32_t> visible;                 // user id -> physical id; ASCEND_RT_VISIBLE_DEVICES
  std::vector<std::uint8_t> peers;                   // device_count^2, 1 = row can reach column
  std::uint32_t peers_per_device = 8;                // directions a device may have on at once; 16 on 950
  std::uint32_t processes_per_direction = 32;        // processes that may hold one direction on
  std::uint64_t normal_page = 4096;                  // page sizes of the emulated device, not of the host
  std::uint64_t huge_page = std::uint64_t{2} << 20;
  std::uint64_t address_space = UINT64_MAX;  // bytes of device addresses that a process may have at a time
  std::uint8_t server = 0;  // which of the machine's servers this process is on: only fabric tokens pass between them
  std::int32_t bare_pid_offset = 0;
  bool bare_pid_by_inode = false;              // DEVSHARE_HOST_BARE_PID=inode
  bool identity_by_start_time = false;         // as on kernels before 6.9
  bool exporter_death_invalidates = true;      // keys: memory goes with its process
  bool cross_device_copy_allowed = false;      // what some hardware was seen to do against R42
  bool interior_export_allowed = false;        // R10, the lenient reading
  bool handle_reimport_counts = false;         // R27, the lenient reading: a second import is the same handle, counted
  bool task_errors_stay = false;               // an error of a task is told by every synchronise from then on
  bool mixed_origins_allowed = false;          // R29, as the driver checks it: the device only
  bool cross_device_needs_p2p_memory = false;  // R43: on 310P only memory of a P2P policy crosses devices
  std::uint32_t exporter_deadline_ms = 5000;   // how long an importer waits for an exporter's answer

  std::string state_directory;    // of the ledger; "" = the user's runtime directory, "none" = no sharing
  std::string socket_directory;   // "" = abstract socket names
  std::string backing_directory;  // device memory in files there; "" = memfd
  bool backing_fallback_allowed = false;
  bool backing_huge = false;       // huge pages of the machine, where it has them
  bool backing_populated = false;  // with all pages from the start
  bool leaks_reported = false;  // what a session still has when it ends
  bool raise_nofile = false;  // raise the soft descriptor limit to the hard one

  std::string journal;  // path of the JSON lines; "" = none
  std::vector<FaultSwitch> faults;
  std::vector<DelaySwitch> delays;
  std::vector<FaultSwitch> task_faults;  // of what stands in streams
  std::vector<DelaySwitch> task_delays;

  bool operator==(const Profile&) const = default;

  bool can_reach(std::int32_t from, std::int32_t to) const noexcept {  // physical ids in range
    return peers[static_cast<std::size_t>(from) * static_cast<std::size_t>(device_count) +
                 static_cast<std::size_t>(to)] != 0;
  }
  // False for a call that this product's documents do not list: its body refuses with 207000.
  bool supports(acl::Entry call) const noexcept;
};

// The profile in force. The reference stays valid for the life of the process, also when a later aclInit puts another
// profile in its place. Any thread.
const Profile& profile();

// Reads everything anew. Refuses with 100000 and a text that names the variable and its value when a value cannot be
// understood; the profile in force stays. For aclInit, when it starts a session.
[[nodiscard]] acl::aclError load_profile();

// What the last reading did not understand, or "". Calls that answer without aclInit look here first.
std::string profile_error();

// Sets a switch by the name of its variable without the prefix ("CAPACITY", "1M"), over the environment, from the next
// aclInit on. False when there is no such switch. The value is judged by aclInit, as one of the environment is.
bool override_switch(std::string_view name, std::string_view value);
void drop_switch_overrides();

std::string_view product_name(Product product) noexcept;

// As in devshare/host.hpp.
std::string_view entry_name(acl::Entry entry) noexcept;
acl::Entry entry_by_name(std::string_view name) noexcept;

// Around fork; called by the device module's handlers.
void profile_lock();
void profile_unlock();

}  // namespace devshare::host
