// SPDX-License-Identifier: Apache-2.0
#include "notify_exports.hpp"

#include "control_page.hpp"

namespace devshare::host {

NotifyExport* NotifyExports::add(std::uint64_t endpoint, KeyForm form) {
  if (by_slot_.size() == most_keys) return nullptr;
  const auto slot = static_cast<std::uint32_t>(by_slot_.size());
  NotifyExport& made = by_slot_.emplace_back();
  made.name = new_key_name(endpoint, slot, form);
  return &made;
}

NotifyExport* NotifyExports::find(const KeyName& name) noexcept {
  if (name.slot >= by_slot_.size()) return nullptr;
  NotifyExport& found = by_slot_[name.slot];
  return found.name.endpoint == name.endpoint && same_secret(found.name, name) ? &found : nullptr;
}

void NotifyExports::creator_left(const KeyName& name) noexcept {
  if (NotifyExport* const found = find(name)) {
    found->creator_left = true;
    found->bit.reset();
  }
}

}  // namespace devshare::host
