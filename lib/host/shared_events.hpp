// SPDX-License-Identifier: Apache-2.0
// Events between processes (ACL_EVENT_IPC) in streams, and how the host waits for one.
#pragma once

#include "shared_moment.hpp"
#include "stream_state.hpp"

#include <memory>
#include <optional>

namespace devshare::host {

// Begins a recording, which happens when the task's turn comes.
std::unique_ptr<Task> record_shared(const std::shared_ptr<SharedMoment>& moment);

// Waits for the recording that is the newest now; null where there is nothing to wait for.
std::unique_ptr<Task> wait_for_shared(const std::shared_ptr<SharedMoment>& moment);

// The host waits, without the lock held by others for long: until it has happened, aclFinalize or `until`. Says whether
// it has happened.
bool wait_on_host(StreamState& all, std::unique_lock<std::mutex>& lock, const SharedMoment& moment,
                  std::optional<std::chrono::steady_clock::time_point> until);

// R49: what such an event does not do.
acl::aclError refuse_shared(const char* what);

}  // namespace devshare::host
