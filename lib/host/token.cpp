// SPDX-License-Identifier: Apache-2.0
#include "token.hpp"

#include "endpoint.hpp"

#include <algorithm>
#include <cstddef>
#include <span>

namespace devshare::host {
namespace {

constexpr unsigned slot_bits = 64 - endpoint_bits;
static_assert(most_tokens == 1U << slot_bits);

constexpr std::uint64_t fabric_magic = 0x3152424146535644;  // "DVSFABR1"

// Places in the 128 bytes.
constexpr std::size_t server_at = 8;
constexpr std::size_t slot_at = 12;
constexpr std::size_t endpoint_at = 16;
constexpr std::size_t secret_at = 24;
constexpr std::size_t zeros_at = secret_at + sizeof(KeyName::secret);
constexpr std::size_t checksum_at = sizeof(acl::aclrtMemFabricHandle) - sizeof(std::uint64_t);
static_assert(zeros_at < checksum_at);

template <class Integer>
void put(acl::aclrtMemFabricHandle& bytes, std::size_t at, Integer value) noexcept {
  for (std::size_t i = 0; i < sizeof value; ++i) bytes.data[at + i] = static_cast<std::uint8_t>(value >> (8 * i));
}

template <class Integer>
Integer take(const acl::aclrtMemFabricHandle& bytes, std::size_t at) noexcept {
  Integer value = 0;
  for (std::size_t i = 0; i < sizeof value; ++i) value |= static_cast<Integer>(Integer{bytes.data[at + i]} << (8 * i));
  return value;
}

std::uint64_t checksum_of(const acl::aclrtMemFabricHandle& bytes) noexcept {
  std::uint64_t hash = 0xcbf29ce484222325U;  // FNV-1a
  for (const std::uint8_t byte : std::span(bytes.data).first<checksum_at>()) hash = (hash ^ byte) * 0x100000001b3U;
  return hash;
}

}  // namespace

std::uint64_t encode_token(const KeyName& name) noexcept { return name.endpoint << slot_bits | name.slot; }

KeyName decode_token(std::uint64_t token) noexcept {
  return {token >> slot_bits, static_cast<std::uint32_t>(token & (most_tokens - 1)), {}};
}

acl::aclrtMemFabricHandle encode_fabric(const FabricToken& token) noexcept {
  acl::aclrtMemFabricHandle bytes{};
  put(bytes, 0, fabric_magic);
  put(bytes, server_at, token.server);
  put(bytes, slot_at, token.name.slot);
  put(bytes, endpoint_at, token.name.endpoint);
  std::copy(token.name.secret.begin(), token.name.secret.end(), bytes.data + secret_at);
  put(bytes, checksum_at, checksum_of(bytes));
  return bytes;
}

std::optional<FabricToken> decode_fabric(const acl::aclrtMemFabricHandle& bytes) noexcept {
  if (take<std::uint64_t>(bytes, 0) != fabric_magic) return std::nullopt;
  if (take<std::uint64_t>(bytes, checksum_at) != checksum_of(bytes)) return std::nullopt;
  FabricToken token;
  token.server = take<std::uint32_t>(bytes, server_at);
  token.name.slot = take<std::uint32_t>(bytes, slot_at);
  token.name.endpoint = take<std::uint64_t>(bytes, endpoint_at);
  std::copy_n(bytes.data + secret_at, token.name.secret.size(), token.name.secret.begin());
  // A checksum is easily made: whoever makes one still cannot name what no exporter names.
  const bool possible = token.name.slot < most_tokens && token.name.endpoint >> endpoint_bits == 0;
  const bool zeros =
      std::all_of(bytes.data + zeros_at, bytes.data + checksum_at, [](std::uint8_t byte) { return byte == 0; });
  return possible && zeros ? std::optional(token) : std::nullopt;
}

}  // namespace devshare::host
