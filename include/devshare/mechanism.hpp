// SPDX-License-Identifier: Apache-2.0
// The words by which sharing is typed.
#pragma once

#include <devshare/detail/attributes.hpp>

#include <cstdint>

namespace devshare {

// How memory is shared. The memory fixes the family: a key needs memory of aclrtMalloc, the others need physical
// memory, and of those a handle can have one only (R27).
enum class Mechanism : std::uint8_t {
  by_key = 1,  // aclrtIpcMem*: memory of aclrtMalloc, named by a key of 65 bytes
  v1 = 2,      // aclrtMemExportToShareableHandle: a physical handle, named by a 64-bit number
  v2 = 3,      // aclrtMemExportToShareableHandleV2, DEFAULT: the same by the newer calls
  fabric = 4,  // aclrtMemExportToShareableHandleV2, FABRIC: 128 bytes that reach other servers of a super-pod
};

// The same as types: what kind of ticket, what kind of export.
struct DEVSHARE_API by_key {
  static constexpr Mechanism mechanism = Mechanism::by_key;
};
struct DEVSHARE_API v1 {
  static constexpr Mechanism mechanism = Mechanism::v1;
};
struct DEVSHARE_API v2 {
  static constexpr Mechanism mechanism = Mechanism::v2;
};
struct DEVSHARE_API fabric {
  static constexpr Mechanism mechanism = Mechanism::fabric;
};

// Who may import: those whose pid was admitted, or whoever holds the ticket.
struct Listed {};
struct Unrestricted {};

// What an importer may do with the memory.
enum class AccessMode : std::uint8_t { read_only = 1, read_write = 2 };

}  // namespace devshare
