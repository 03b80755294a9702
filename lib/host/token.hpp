// SPDX-License-Identifier: Apache-2.0
// The token by which a physical handle is shared (ACL: a shareable handle): what it says and how it is spelt. To
// everybody but this file a token is an opaque number, or 128 opaque bytes (R61).
//
//   local   64 bits: endpoint 40, slot 24. A plain number as on the card: whoever admits anybody by it relies on nobody
//           guessing the endpoint, and on the user of the process at the other end.
//   fabric  128 bytes: magic u64, server u32, slot u32, endpoint u64, secret[28], zeros, checksum u64; little-endian.
//           The checksum finds damage, not malice: for that there is the secret.
//
// Slots are never given twice, so a token that has ended stays unknown for ever (R30).
#pragma once

#include "key.hpp"

#include <devshare/acl/vmm_types.hpp>

#include <cstdint>
#include <optional>

namespace devshare::host {

inline constexpr std::uint32_t most_tokens = 1U << 24;  // of one session of a process, ended ones included

// Which calls a token belongs to: those of another kind do not know it (R31).
enum class TokenKind : std::uint8_t { v1, v2, fabric };

// The name in a token is that of a key: endpoint, slot, and for a fabric token the secret.
std::uint64_t encode_token(const KeyName& name) noexcept;
KeyName decode_token(std::uint64_t token) noexcept;  // every number names something, though hardly anything that exists

struct FabricToken {
  KeyName name;
  std::uint32_t server = 0;  // where it was exported

  bool operator==(const FabricToken&) const = default;
};
acl::aclrtMemFabricHandle encode_fabric(const FabricToken& token) noexcept;

// Empty for anything that encode_fabric does not make.
std::optional<FabricToken> decode_fabric(const acl::aclrtMemFabricHandle& bytes) noexcept;

}  // namespace devshare::host
