// SPDX-License-Identifier: Apache-2.0
// What the exporting calls have in common, of keys and of tokens: the session of this process, and why there is none.
#pragma once

#include "export_session.hpp"
#include "failure.hpp"
#include "per_process.hpp"

#include <memory>

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

// 207001, with the limit.
acl::aclError refuse_export_descriptors(int error);

}  // namespace devshare::host
