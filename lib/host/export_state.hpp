// SPDX-License-Identifier: Apache-2.0
// What the exporting calls have in common, of keys and of tokens: the session of this process, and why there is none.
#pragma once

#include "export_session.hpp"
#include "failure.hpp"
#include "per_process.hpp"

#include <memory>
#include <span>
#include <vector>

namespace devshare::host {

struct ExportState : ProcessState<ExportState> {
  std::unique_ptr<ExportSession> session;     // null until the first export
  std::vector<MemoryName> left_on_their_way;  // by the session that has ended

  void close_inherited() noexcept {
    if (session != nullptr) session->close_descriptors();
  }
};

extern PerProcess<ExportState> export_state;

// Under the lock: memory ends. True when nobody has it, but it was sent ahead to who has not looked yet, and whose message
// would keep its bytes for as long as he likes.
bool only_on_its_way(ExportState& all, const MemoryName& memory);

// Under the lock: makes sure that there is a session.
acl::aclError need_session(ExportState& all);

// What admitting has in common, of keys and of notifies: how many at a time (R16), the entries of other servers, and,
// under the lock, those who are to come onto the list: all of them, or none.
acl::aclError check_pid_count(std::size_t count);
acl::aclError check_server_pids(std::span<const acl::aclrtServerPid> servers);
acl::aclError admit_pids(ExportSession& session, const Whitelist& list, std::span<const std::int32_t> pids,
                         Whitelist* admitted);

// 207001, with the limit.
acl::aclError refuse_export_descriptors(int error);

}  // namespace devshare::host
