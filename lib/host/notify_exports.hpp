// SPDX-License-Identifier: Apache-2.0
// The notifies that a process has exported, by name. For the export session, under its lock.
#pragma once

#include "key.hpp"
#include "notify_record.hpp"
#include "whitelist.hpp"

#include <deque>
#include <memory>

namespace devshare::host {

struct NotifyExport {
  KeyName name;
  std::shared_ptr<NotifyBit> bit;
  std::int32_t device = -1;   // physical
  bool open_to_all = false;   // exported with pid validation disabled
  bool creator_left = false;  // destroyed where it was created: no new imports, and recording it does nothing
  Whitelist whitelist;
};

class NotifyExports {
 public:
  // Null when there are as many as there may be. Entries stay: who imported one may record it for as long as it likes.
  NotifyExport* add(std::uint64_t endpoint, KeyForm form);
  NotifyExport* find(const KeyName& name) noexcept;
  void creator_left(const KeyName& name) noexcept;

 private:
  std::deque<NotifyExport> by_slot_;
};

}  // namespace devshare::host
