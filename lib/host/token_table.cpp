// SPDX-License-Identifier: Apache-2.0
#include "token_table.hpp"

namespace devshare::host {

const TokenExport& TokenTable::add(std::uint64_t endpoint, TokenKind kind, const PhysicalMemory& memory,
                                   bool open_to_all) {
  const std::uint32_t slot = next_slot_++;
  TokenExport& token = by_slot_[slot];
  token.name = {endpoint, slot, {}};
  if (kind == TokenKind::fabric) token.name = new_key_name(endpoint, slot, KeyForm::binary);
  token.kind = kind;
  token.memory = &memory;
  token.open_to_all = open_to_all;
  slot_of_memory_[memory.id] = slot;
  return token;
}

TokenExport* TokenTable::find(const KeyName& name) noexcept {
  const auto found = by_slot_.find(name.slot);
  if (found == by_slot_.end()) return nullptr;
  TokenExport& token = found->second;
  return token.name.endpoint == name.endpoint && same_secret(token.name, name) ? &token : nullptr;
}

const TokenExport* TokenTable::of_memory(std::uint64_t id) const noexcept {
  const auto slot = slot_of_memory_.find(id);
  return slot != slot_of_memory_.end() ? &by_slot_.at(slot->second) : nullptr;
}

void TokenTable::end(std::uint64_t memory) noexcept {
  const auto slot = slot_of_memory_.find(memory);
  if (slot == slot_of_memory_.end()) return;
  by_slot_.erase(slot->second);
  slot_of_memory_.erase(slot);
}

void TokenTable::end_all() noexcept {
  by_slot_.clear();
  slot_of_memory_.clear();
}

}  // namespace devshare::host
