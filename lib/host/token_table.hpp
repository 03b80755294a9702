// SPDX-License-Identifier: Apache-2.0
// The tokens of one process: which physical memory each stands for, and who may import it.
//
// A token never keeps memory alive. It ends with the last count of its handle, and its slot is not used again (R30).
// The memory sees to that: before anything of it goes it ends its token, under the lock that whoever uses a token
// holds.
#pragma once

#include "physical.hpp"
#include "token.hpp"
#include "whitelist.hpp"

#include <cstddef>
#include <cstdint>
#include <unordered_map>

namespace devshare::host {

struct TokenExport {
  KeyName name;
  TokenKind kind = TokenKind::v1;
  const PhysicalMemory* memory = nullptr;
  bool open_to_all = false;  // exported with pid validation disabled
  Whitelist whitelist;
};

// Its user has a lock.
class TokenTable {
 public:
  explicit TokenTable(std::uint32_t first_slot = 0) noexcept : next_slot_(first_slot) {}

  bool full() const noexcept { return next_slot_ == most_tokens; }

  // A new token of memory that has none. Not when full.
  const TokenExport& add(std::uint64_t endpoint, TokenKind kind, const PhysicalMemory& memory, bool open_to_all);

  TokenExport* find(const KeyName& name) noexcept;  // null for one that never was, or has ended
  const TokenExport* of_memory(std::uint64_t id) const noexcept;
  void end(std::uint64_t memory) noexcept;  // by its id, with a token or without
  void end_all() noexcept;

  template <class Visit>
  void for_each(Visit visit) const {
    for (const auto& [slot, token] : by_slot_) visit(token);
  }

  std::size_t size() const noexcept { return by_slot_.size(); }

 private:
  std::uint32_t next_slot_;
  std::unordered_map<std::uint32_t, TokenExport> by_slot_;
  std::unordered_map<std::uint64_t, std::uint32_t> slot_of_memory_;
};

}  // namespace devshare::host
