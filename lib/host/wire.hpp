// SPDX-License-Identifier: Apache-2.0
// The messages between an importer and an exporter: fixed size, little-endian, one request and one reply. Pure
// functions between bytes and values: whatever bytes come in, decoding reads only them and says yes or no.
//
//   request  magic u32, version u16, op u16, sequence u32, bare pid i32, endpoint u64, slot u32, secret[28], kind u16,
//            server u16
//   reply    magic u32, version u16, op u16, sequence u32, code i32, reason u16, flags u16, pid i32, listed pid i32,
//            listed count u32, needed u64, available u64, device i32, watch u64, offset u64, size u64, page size u64,
//            kind u16, server u16, attribute i32, location type i32, location id u32, endpoint u64, slot u32, secret[28]
//
// One reply comes without a request: memory for whoever has just been admitted to it. Its sequence is 0, and it says what
// it is of.
#pragma once

#include "key.hpp"
#include "token.hpp"

#include <devshare/acl/types.hpp>
#include <devshare/detail/cause.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace devshare::host {

inline constexpr std::uint32_t wire_magic = 0x31535644;  // "DVS1"
inline constexpr std::uint16_t wire_version = 3;

enum class Op : std::uint16_t {
  hello = 1,      // the reply carries the control page
  import_memory,  // of a key; the reply carries the memory
  import_handle,  // of a token; the reply carries the memory
  admit,          // to a token, by a process that is not its exporter: always refused, and the reply says why
  import_notify,  // the reply names the device
  record_notify,  // by an importer; done when the reply comes
  import_event,   // the reply carries its page
};

// Whether the answer to such a request, if it is no refusal, brings a descriptor.
constexpr bool brings_descriptor(Op op) noexcept { return op < Op::admit || op == Op::import_event; }

struct Request {
  Op op = Op::hello;
  std::uint32_t sequence = 0;
  std::int32_t bare_pid = 0;  // the number the importer goes by: to explain refusals, never to allow anything
  KeyName key;                // or the name in a token; hello uses the endpoint only
  TokenKind kind = TokenKind::v1;  // of a token
  std::uint8_t server = 0;         // where the importer is

  bool operator==(const Request&) const = default;
};

struct Reply {
  Op op = Op::hello;
  std::uint32_t sequence = 0;  // of the request; 0: to none, a refusal of whoever connects or memory sent ahead
  acl::aclError code = 0;
  detail::Reason reason = detail::Reason::none;  // why not, when code is not 0
  std::int32_t pid = 0;                          // refusals: the number by which the exporter knows the importer
  std::int32_t listed_pid = 0;                   // refusals: one of the numbers that were admitted
  std::uint32_t listed_count = 0;
  std::uint64_t needed = 0;  // refusals for a limit
  std::uint64_t available = 0;
  std::int32_t device = -1;  // physical, of the memory
  bool read_only = false;
  bool p2p_policy = false;   // allocated for access from other devices (R43)
  bool unsealed = false;     // a fallback file, whose size nothing guards
  std::uint64_t watch = 0;   // what the control page holds for it while the key or the token is good
  std::uint64_t offset = 0;  // of the shared bytes in the descriptor
  std::uint64_t size = 0;
  std::uint64_t page_size = 0;
  TokenKind kind = TokenKind::v1;  // of the token, which a request may take for one of another kind
  std::uint8_t server = 0;         // where the exporter is
  // Of a handle, whose memory may be the host's: then the device is -1. The location has the exporter's device number.
  std::int32_t attribute = 0;
  std::int32_t location_type = 0;
  std::uint32_t location_id = 0;
  KeyName key = {};  // sent ahead: of what; with the kind, if it is a token

  bool operator==(const Reply&) const = default;
};

inline constexpr std::size_t request_size = 4 + 2 + 2 + 4 + 4 + 8 + 4 + 28 + 2 + 2;
inline constexpr std::size_t reply_size =
    4 + 2 + 2 + 4 + 4 + 2 + 2 + 4 + 4 + 4 + 8 + 8 + 4 + 8 + 8 + 8 + 8 + 2 + 2 + 4 + 4 + 4 + 8 + 4 + 28;
using RequestBytes = std::array<std::uint8_t, request_size>;
using ReplyBytes = std::array<std::uint8_t, reply_size>;

RequestBytes encode(const Request& request) noexcept;
ReplyBytes encode(const Reply& reply) noexcept;

std::optional<Request> decode_request(std::span<const std::uint8_t> bytes) noexcept;
std::optional<Reply> decode_reply(std::span<const std::uint8_t> bytes) noexcept;

}  // namespace devshare::host
