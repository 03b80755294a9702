// SPDX-License-Identifier: Apache-2.0
// The tokens of one process: which physical memory each stands for, and who may import it.
//
// A token never keeps memory alive. It ends with the last count of its handle, and its slot is not used again (R30).
#pragma once

#include "physical.hpp"
#include "token.hpp"
#include "whitelist.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <unordered_map>

namespace devshare::host {

struct TokenExport {
  KeyName name;
  TokenKind kind = TokenKind::v1;
  std::uint64_t id = 0;  // of the memory
  std::weak_ptr<const PhysicalMemory> memory;
  bool open_to_all = false;  // exported with pid validation disabled
  Whitelist whitelist;
};

// Its user has a lock, under which no memory may end: whoever gets hold of some lets go of it afterwards.
class TokenTable {
 public:
  explicit TokenTable(std::uint32_t first_slot = 0) noexcept : next_slot_(first_slot) {}

  bool full() const noexcept { return next_slot_ == most_tokens; }

  // A new token of memory that has none. Not when full.
  const TokenExport& add(std::uint64_t endpoint, TokenKind kind, const Physical& memory, bool open_to_all);

  TokenExport* find(const KeyName& name) noexcept;  // null for one that never was, or whose memory is gone
  const TokenExport* of_memory(std::uint64_t id) const noexcept;
  void end(std::uint64_t memory) noexcept;  // by its id, with a token or without
  std::size_t size() const noexcept { return by_slot_.size(); }

 private:
  std::uint32_t next_slot_;
  std::unordered_map<std::uint32_t, TokenExport> by_slot_;
  std::unordered_map<std::uint64_t, std::uint32_t> slot_of_memory_;
};

}  // namespace devshare::host
