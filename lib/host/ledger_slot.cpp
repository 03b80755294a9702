// SPDX-License-Identifier: Apache-2.0
#include "ledger_state.hpp"

#include "profile.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

namespace devshare::host {
namespace {

static_assert(max_devices == static_cast<std::int32_t>(state_devices));

// With the file's lock held.
bool has_file_to_itself(const LedgerState& self) noexcept {
  const auto slots = self.file.used_slots();
  for (std::size_t index = 0; index < slots.size(); ++index) {
    if (index != self.slot && slots[index].pid.load() != 0 && self.file.slot_held_by_other(index)) return false;
  }
  return true;
}

}  // namespace

void publish_claimed(const LedgerState& self, std::int32_t device) noexcept {
  if (StateSlot* slot = own_slot(self)) slot->claimed[at(device)].store(self.claimed[at(device)]);
}

// The version goes first: a reader that sees none change while it adds up has read one moment of all slots. Two changes
// of which one made room for the other cannot both slip through, since the second claims, and so bumps, after the
// first.
void publish_committed(const LedgerState& self, std::int32_t device) noexcept {
  StateSlot* slot = own_slot(self);
  if (slot == nullptr) return;
  slot->version.fetch_add(2);  // an odd one stays odd
  slot->committed[at(device)].store(self.committed[at(device)]);
}

std::uint16_t reach_of(const LedgerState& self, std::int32_t from) noexcept {
  unsigned bits = 0;
  for (std::size_t to = 0; to < state_devices; ++to) bits |= self.grants[at(from)][to] != 0 ? 1U << to : 0U;
  return static_cast<std::uint16_t>(bits);
}

void publish_grants(const LedgerState& self, std::int32_t from) noexcept {
  if (StateSlot* slot = own_slot(self)) slot->reaches[at(from)].store(reach_of(self, from));
}

void take_a_slot(LedgerState& self) {
  const std::size_t used = self.file.used_slots().size();
  for (std::size_t index = 0; index < slot_count; ++index) {
    if (index < used && self.file.slot(index).pid.load() != 0 && self.file.slot_held_by_other(index)) continue;
    if (index >= used && !self.file.reserve(index + 1)) {
      return work_alone(self, fmt::format("no space for the state file: {}", std::generic_category().message(errno)));
    }
    StateSlot& slot = self.file.slot(index);
    slot.clear();  // before it is locked: whoever reads a locked slot reads its owner's values
    if (!self.file.take_slot(index)) continue;
    self.slot = index;
    self.generation = slot.generation.load();
    slot.pid.store(::getpid());
    for (std::int32_t device = 0; device < max_devices; ++device) {
      publish_claimed(self, device);
      publish_committed(self, device);
      publish_grants(self, device);
    }
    if (index >= used) self.file.header().high_water.store(static_cast<std::uint32_t>(index + 1));
    if (has_file_to_itself(self)) clear_shared_claims(self.file);
    if (!republish_shared(self)) work_alone(self, "the table of shared memory in the state file is full");
    return;
  }
  work_alone(self, fmt::format("{} processes share the state file, and that is all it has room for", slot_count));
}

}  // namespace devshare::host
