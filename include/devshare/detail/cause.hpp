// SPDX-License-Identifier: Apache-2.0
// Why the host runtime refused the last call of this thread. The ACL code for nearly every refusal is 507899; a runtime
// that knows more says it here, beside the code and never instead of it. The vendor's runtime has no such record.
#pragma once

#include <cstdint>

namespace devshare::detail {

enum class Reason : std::uint16_t {
  none,                   // the runtime did not say
  not_initialised,        // aclInit was not called, or aclFinalize was
  forked,                 // the runtime belongs to the parent process (R4)
  no_context,             // the thread has no current device (R1)
  bad_argument,           // null, zero, out of range, unknown flag
  no_such_device,         // device id outside [0, count)
  unsupported,            // this profile or product does not have the call
  injected,               // a fault asked for through devshare/host.hpp
  capacity,               // device memory is used up: needed, available
  no_space,               // the backing file system is full: needed, available
  descriptor_limit,       // RLIMIT_NOFILE: needed = in use, available = limit
  mapping_limit,          // vm.max_map_count
  address_space,          // the device window has no free range: needed, available
  backend_unavailable,    // the kernel refuses what the runtime is made of (memfd, sockets): system_errno
  not_device_memory,      // the address is no device memory of this process
  not_block_start,        // R10: inside an allocation, not at its start
  imported_memory,        // R12, R23: the memory came from another process
  read_only,              // R12
  out_of_bounds,          // a copy or an export that leaves its allocation: needed, available
  cross_device_copy,      // R42
  in_use,                 // still used by something that must end first
  unknown_key,            // nobody has this key: never exported, closed, freed, or the exporter has ended
  exporter_gone,          // the exporting process ended
  not_admitted,           // R13, R14: the importer's pid is not on the list: pid = importer's
  admitted_too_early,     // R15: the pid was admitted before the importing process started: pid = importer's
  validation_disabled,    // R13: admit on a key exported without pid validation
  not_the_exporter,       // R17: admit or close by another process
  too_many_pids,          // R16
  own_key,                // import in the exporting process
  on_other_device,        // R25: the key is imported on another device of this process: peer_device
  peer_access_missing,    // R19, R45: both directions must be on
  peer_access_limit,      // 8 peers a device, 32 processes a direction
  peer_impossible,        // the two devices cannot reach each other
  not_imported,           // R24: more closes than imports
  user_refused,           // the process at the other end belongs to another user
  timed_out,              // the exporter did not answer in time
  protocol,               // the other side sent what no runtime of ours sends
  key_limit,              // as many keys as a process may have, or pids as a key may list: available
  foreign_pid_namespace,  // admitted by a plain pid, which the exporter cannot check from its pid namespace: pid
  p2p_policy_missing,     // R43: crosses devices, but was not allocated with a P2P policy
  bad_switch,             // a variable of the host runtime is none, or has a value that cannot be understood
  already_exported,       // R27: a physical handle has one token, and this one has it
  already_imported,       // R27: this process has the token imported already
  wrong_token_kind,       // R31: the token belongs to the calls of another kind
  other_server,           // the key or token is of another server: available = its number
  unknown_handle,         // R40: no live handle of this process
  mapped_memory,          // R12: memory mapped from a physical handle, which is shared by its handle and freed by it
  not_reserved,           // the range is not inside one address reservation, or nothing is mapped where it starts
  already_mapped,         // something is mapped there, or registered
  mixed_memory,           // R29: the reservation holds memory of another device or of another origin
  no_access,              // mapped without access, and aclrtMemSetAccess has not been called
  unknown_stream,         // no live stream of this process
  unknown_event,          // no live event of this process
  unknown_notify,         // no live notify of this process
  other_device,           // a stream, event or notify of another device than it is used on: device, peer_device = its own
  resource_limit,         // as many streams, events or notifies as there may be: available
  earlier_task_failed,    // a task in a stream of the device failed, and no synchronise has reported it yet
  not_happened,           // an event that has not been recorded, or not completed
  shared_event,           // R49: what an event for other processes does not do
  not_the_creator,        // R46: only the process that created a notify waits on it
};

inline constexpr Reason last_reason = Reason::not_the_creator;

// 40 bytes, plain. Fields that a reason does not use are zero.
struct Cause {
  Reason reason = Reason::none;
  std::int32_t system_errno = 0;
  std::int32_t pid = 0;
  std::int32_t device = -1;
  std::int32_t peer_device = -1;
  std::uint64_t needed = 0;
  std::uint64_t available = 0;
};

}  // namespace devshare::detail
