// SPDX-License-Identifier: Apache-2.0
// Notifies and events that a process has exported, by name. For the export session, under its lock.
#pragma once

#include "control_page.hpp"
#include "key.hpp"

#include <cstdint>
#include <deque>

namespace devshare::host {

// T has `KeyName name` and `void creator_left()`. Entries stay to the end of the session: what its creator has
// destroyed is still there for those who have it.
template <class T>
class NamedExports {
 public:
  // Null when there are as many as there may be.
  T* add(std::uint64_t endpoint, KeyForm form) {
    if (by_slot_.size() == most_keys) return nullptr;
    const auto slot = static_cast<std::uint32_t>(by_slot_.size());
    T& made = by_slot_.emplace_back();
    made.name = new_key_name(endpoint, slot, form);
    return &made;
  }

  T* find(const KeyName& name) noexcept {
    if (name.slot >= by_slot_.size()) return nullptr;
    T& found = by_slot_[name.slot];
    return found.name.endpoint == name.endpoint && same_secret(found.name, name) ? &found : nullptr;
  }

  void creator_left(const KeyName& name) noexcept {
    if (T* const found = find(name)) found->creator_left();
  }

  template <class Visit>
  void for_each(Visit visit) {
    for (T& each : by_slot_) visit(each);
  }

 private:
  std::deque<T> by_slot_;
};

}  // namespace devshare::host
