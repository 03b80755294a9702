// SPDX-License-Identifier: Apache-2.0
// What the exporting calls have in common, of keys and of tokens: the session of this process, and why there is none.
#pragma once

#include "export_session.hpp"
#include "failure.hpp"
#include "per_process.hpp"

#include <memory>
#include <span>

namespace devshare::host {

struct ExportState : ProcessState<ExportState> {
  std::unique_ptr<ExportSession> session;  // null until the first export

  void close_inherited() noexcept {
    if (session != nullptr) session->close_descriptors();
  }
};

extern PerProcess<ExportState> export_state;

// Under the lock: makes sure that there is a session.
acl::aclError need_session(ExportState& all);

// What admitting has in common, of keys and of notifies: how many at a time (R16), the entries of other servers, and
// the list itself, under the lock.
acl::aclError check_pid_count(std::size_t count);
acl::aclError check_server_pids(std::span<const acl::aclrtServerPid> servers);
acl::aclError admit_pids(ExportSession& session, Whitelist& list, std::span<const std::int32_t> pids);

// 207001, with the limit.
acl::aclError refuse_export_descriptors(int error);

}  // namespace devshare::host
