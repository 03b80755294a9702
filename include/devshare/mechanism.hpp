// SPDX-License-Identifier: Apache-2.0
// The words by which sharing is typed.
#pragma once

#include <cstdint>

namespace devshare {

// How memory is shared.
enum class Mechanism : std::uint8_t {
  by_key = 1,  // aclrtIpcMem*: memory of aclrtMalloc, named by a key of 65 bytes
};

// The same as types: what kind of ticket, what kind of export.
struct by_key {
  static constexpr Mechanism mechanism = Mechanism::by_key;
};

// Who may import: those whose pid was admitted, or whoever holds the ticket.
struct Listed {};
struct Unrestricted {};

// What an importer may do with the memory.
enum class AccessMode : std::uint8_t { read_only = 1, read_write = 2 };

}  // namespace devshare
