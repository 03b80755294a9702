// SPDX-License-Identifier: Apache-2.0
// Devices, contexts, the current device of a thread, and peer access.
#pragma once

#include "context_number.hpp"
#include "thread_call.hpp"

#include <devshare/acl/types.hpp>

#include <cstdint>

namespace devshare::host {

// The current device of the calling thread, or a refusal with 107002 (R1).
acl::aclError current_device(DeviceNumber* out);

// Its user id, -1 where there is none: the same for whoever has no use for a refusal.
std::int32_t device_at_hand(const ThreadCall& thread) noexcept;

// Both numbers of a device by its user id, or a refusal with 107001.
acl::aclError find_device(std::int32_t user, DeviceNumber* out);

// The number by which this process calls a physical device, -1 when it does not see it.
std::int32_t user_number(std::int32_t physical);

// Peer access between physical devices. `peer_access_effective` is true for a == b and where both directions are on.
bool peer_access_effective(std::int32_t a, std::int32_t b);

// What an import with flag 1 does: both directions on, counted to this process until it ends. A no-op for a == b.
acl::aclError enable_peer_access_for_import(std::int32_t importer, std::int32_t owner);

// aclFinalize: every context ends and every device of this process is closed.
void devices_shut_down();

}  // namespace devshare::host
