// SPDX-License-Identifier: Apache-2.0
// What a process has exported besides memory.
#pragma once

#include "named_exports.hpp"
#include "notify_record.hpp"
#include "shared_moment.hpp"
#include "whitelist.hpp"

#include <memory>

namespace devshare::host {

struct NotifyExport {
  KeyName name;
  std::shared_ptr<NotifyBit> bit;  // null: destroyed where it was created. No new imports, and recording does nothing
  std::int32_t device = -1;        // physical
  bool open_to_all = false;        // exported with pid validation disabled
  Whitelist whitelist;

  void creator_left() noexcept { bit.reset(); }
};

// Anybody may open an event who has its handle.
struct EventExport {
  KeyName name;
  std::shared_ptr<SharedMoment> moment;  // null: destroyed where it was created. No new imports
  std::int32_t device = -1;              // physical

  void creator_left() noexcept { moment.reset(); }
};

using NotifyExports = NamedExports<NotifyExport>;
using EventExports = NamedExports<EventExport>;

}  // namespace devshare::host
