// SPDX-License-Identifier: Apache-2.0
// The messages of lending: docs/lending.md has the table. One message is one record of a SOCK_SEQPACKET socket. Pure
// functions of bytes; fuzzed.
#pragma once

#include <devshare/address.hpp>
#include <devshare/choose.hpp>
#include <devshare/error.hpp>
#include <devshare/mechanism.hpp>
#include <devshare/ticket.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace devshare::detail {

inline constexpr std::size_t longest_offer_name = 96;
inline constexpr std::size_t longest_message = 512;

enum class MessageType : std::uint16_t {
  // from the borrower
  hello = 1,      // the first: bare pid, what it can import
  borrow,         // a request: an offer by name
  cancel,         // a request that it does not wait for any more
  imported,       // a lease: the import is open
  not_imported,   // a lease: it could not be, and why
  returned,       // a lease: the import is closed
  // from the lender
  welcome,        // to hello
  lent,           // to borrow: a lease and its ticket
  waiting,        // to borrow: there is no such offer yet
  refused,        // to hello or borrow: why
  newer,          // a lease: there is newer data
  wanted_back,    // a lease: the offer was withdrawn
  revoked,        // a lease: and it is taken back
};
inline constexpr bool from_borrower(MessageType type) noexcept { return type < MessageType::welcome; }

// An error that happened at the other side.
struct RemoteError {
  std::uint16_t kind = 0;
  std::uint16_t operation = 0;
  std::uint16_t entry = 0;
  std::uint16_t reason = 0;
  std::int32_t acl_code = 0;
  std::int32_t system_errno = 0;
  std::uint64_t needed = 0;
  std::uint64_t available = 0;
};

// Every message, decoded: fields that its type has no use for hold their defaults.
struct Message {
  MessageType type{};
  std::uint32_t request = 0;
  std::uint64_t lease = 0;
  std::uint64_t generation = 0;
  std::int32_t pid = 0;     // bare
  std::int32_t device = -1;
  Mechanisms mechanisms;
  AccessMode access = AccessMode::read_write;
  bool may_wait = false;
  Slice slice;
  RemoteError error;
  std::uint8_t name_size = 0;
  std::array<char, longest_offer_name> name_storage{};
  std::array<std::byte, ticket_size> ticket{};

  std::string_view name() const noexcept { return {name_storage.data(), name_size}; }
  void set_name(std::string_view name) noexcept {
    name_size = static_cast<std::uint8_t>(name.copy(name_storage.data(), longest_offer_name));
  }
};

struct MessageBytes {
  std::array<std::byte, longest_message> storage;
  std::size_t size = 0;
  std::span<const std::byte> bytes() const noexcept { return {storage.data(), size}; }
};

MessageBytes encode(const Message& message) noexcept;

enum class Decoded : std::uint8_t { yes, malformed, other_version };
// `from_borrower`: which side's messages are understood.
Decoded decode(std::span<const std::byte> bytes, bool from_borrower, Message& message) noexcept;

}  // namespace devshare::detail
