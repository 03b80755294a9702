// SPDX-License-Identifier: Apache-2.0
// An export key: what it says and how it is spelt. To everybody but this file a key is 65 opaque bytes (R61).
//
//   text    64 hexadecimal digits and a NUL: endpoint 16, slot 8, secret 40 (160 bits)
//   binary  50 bytes without a zero and a NUL, the form of the 950: endpoint 8, slot 4, secret 28 (224 bits), each zero
//           byte replaced by a one, and ten bytes that say which those were. Not UTF-8.
#pragma once

#include "profile.hpp"

#include <devshare/acl/types.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace devshare::host {

using KeyBytes = std::array<char, acl::ipc_key_size>;

struct KeyName {
  std::uint64_t endpoint = 0;             // of the exporting process: random, and the name of its socket
  std::uint32_t slot = 0;                 // which of its exports
  std::array<std::uint8_t, 28> secret{};  // what makes a guess hopeless; the text form carries the first 20 bytes

  bool operator==(const KeyName&) const = default;
};

enum class KeyForm : std::uint8_t { text, binary };

KeyForm key_form(Product product) noexcept;

// A name with a fresh secret of the length that the form carries.
KeyName new_key_name(std::uint64_t endpoint, std::uint32_t slot, KeyForm form);

KeyBytes encode_key(const KeyName& name, KeyForm form) noexcept;

// Reads at most 65 bytes and none past the first NUL. Empty for anything that encode_key does not make.
std::optional<KeyName> decode_key(const char* key, KeyForm form) noexcept;

// Compares in a time that does not depend on the bytes.
bool same_secret(const KeyName& a, const KeyName& b) noexcept;

}  // namespace devshare::host
