// SPDX-License-Identifier: Apache-2.0
#include "wire.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <type_traits>

namespace devshare::host {
namespace {

using detail::Reason;

constexpr std::uint16_t flag_read_only = 1;
constexpr std::uint16_t flag_p2p_policy = 2;
constexpr std::uint16_t flag_unsealed = 4;
constexpr std::uint16_t all_flags = flag_read_only | flag_p2p_policy | flag_unsealed;

// Puts integers into bytes one after the other, and takes them out again in the same order.
class Writer {
 public:
  explicit Writer(std::span<std::uint8_t> out) noexcept : left_(out) {}

  template <class Integer>
  void put(Integer value) noexcept {
    if constexpr (std::endian::native == std::endian::little) {
      std::memcpy(left_.data(), &value, sizeof value);
    } else {
      const auto bits = static_cast<std::make_unsigned_t<Integer>>(value);
      for (std::size_t i = 0; i < sizeof bits; ++i) left_[i] = static_cast<std::uint8_t>(bits >> (8 * i));
    }
    left_ = left_.subspan(sizeof value);
  }
  void put(std::span<const std::uint8_t> bytes) noexcept {
    std::copy(bytes.begin(), bytes.end(), left_.begin());
    left_ = left_.subspan(bytes.size());
  }

 private:
  std::span<std::uint8_t> left_;
};

class Reader {
 public:
  explicit Reader(std::span<const std::uint8_t> in) noexcept : left_(in) {}

  template <class Integer>
  void take(Integer& value) noexcept {
    if constexpr (std::endian::native == std::endian::little) {
      std::memcpy(&value, left_.data(), sizeof value);
    } else {
      std::make_unsigned_t<Integer> bits = 0;
      for (std::size_t i = 0; i < sizeof bits; ++i) {
        bits = static_cast<std::make_unsigned_t<Integer>>(bits | static_cast<std::make_unsigned_t<Integer>>(left_[i])
                                                                     << (8 * i));
      }
      value = static_cast<Integer>(bits);
    }
    left_ = left_.subspan(sizeof value);
  }
  void take(std::span<std::uint8_t> bytes) noexcept {
    std::copy_n(left_.begin(), bytes.size(), bytes.begin());
    left_ = left_.subspan(bytes.size());
  }

 private:
  std::span<const std::uint8_t> left_;
};

void put_head(Writer& out, Op op, std::uint32_t sequence) noexcept {
  out.put(wire_magic);
  out.put(wire_version);
  out.put(static_cast<std::uint16_t>(op));
  out.put(sequence);
}

bool take_head(Reader& in, Op& op, std::uint32_t& sequence) noexcept {
  std::uint32_t magic = 0;
  std::uint16_t version = 0;
  std::uint16_t raw_op = 0;
  in.take(magic);
  in.take(version);
  in.take(raw_op);
  in.take(sequence);
  op = static_cast<Op>(raw_op);
  return magic == wire_magic && version == wire_version && op >= Op::hello && op <= Op::import_event;
}

void put_name(Writer& out, const KeyName& name) noexcept {
  out.put(name.endpoint);
  out.put(name.slot);
  out.put(std::span<const std::uint8_t>(name.secret));
}

void take_name(Reader& in, KeyName& name) noexcept {
  in.take(name.endpoint);
  in.take(name.slot);
  in.take(std::span<std::uint8_t>(name.secret));
}

// A server's number is a byte and travels in two, so that a message has no byte that nothing looks at.
bool take_kind_and_server(Reader& in, TokenKind& kind, std::uint8_t& server) noexcept {
  std::uint16_t raw_kind = 0;
  std::uint16_t raw_server = 0;
  in.take(raw_kind);
  in.take(raw_server);
  kind = static_cast<TokenKind>(raw_kind);
  server = static_cast<std::uint8_t>(raw_server);
  return raw_kind <= static_cast<std::uint16_t>(TokenKind::fabric) && raw_server <= UINT8_MAX;
}

void put_kind_and_server(Writer& out, TokenKind kind, std::uint8_t server) noexcept {
  out.put(static_cast<std::uint16_t>(kind));
  out.put(static_cast<std::uint16_t>(server));
}

bool is_page_size(std::uint64_t bytes) noexcept { return std::has_single_bit(bytes); }

// Whether what a reply describes can exist.
bool describes_something(const Reply& reply) noexcept {
  switch (reply.op) {
    case Op::hello:
    case Op::record_notify:
      return true;
    case Op::import_notify:
      return reply.device >= 0;
    case Op::import_event:
    case Op::import_memory:
      return reply.size != 0 && reply.device >= 0 && reply.offset + reply.size >= reply.size &&
             is_page_size(reply.page_size);
    case Op::import_handle:  // always whole
      return reply.size != 0 && reply.device >= -1 && reply.offset == 0 && is_page_size(reply.page_size) &&
             reply.size % reply.page_size == 0;
    case Op::admit:
      break;
  }
  return false;
}

}  // namespace

RequestBytes encode(const Request& request) noexcept {
  RequestBytes bytes{};
  Writer out(bytes);
  put_head(out, request.op, request.sequence);
  out.put(request.bare_pid);
  put_name(out, request.key);
  put_kind_and_server(out, request.kind, request.server);
  return bytes;
}

std::optional<Request> decode_request(std::span<const std::uint8_t> bytes) noexcept {
  if (bytes.size() != request_size) return std::nullopt;
  Reader in(bytes);
  Request request;
  if (!take_head(in, request.op, request.sequence)) return std::nullopt;
  in.take(request.bare_pid);
  take_name(in, request.key);
  if (!take_kind_and_server(in, request.kind, request.server)) return std::nullopt;
  return request;
}

ReplyBytes encode(const Reply& reply) noexcept {
  ReplyBytes bytes{};
  Writer out(bytes);
  put_head(out, reply.op, reply.sequence);
  out.put(reply.code);
  out.put(static_cast<std::uint16_t>(reply.reason));
  out.put(static_cast<std::uint16_t>((reply.read_only ? flag_read_only : 0) | (reply.p2p_policy ? flag_p2p_policy : 0) |
                                     (reply.unsealed ? flag_unsealed : 0)));
  out.put(reply.pid);
  out.put(reply.listed_pid);
  out.put(reply.listed_count);
  out.put(reply.needed);
  out.put(reply.available);
  out.put(reply.device);
  out.put(reply.watch);
  out.put(reply.offset);
  out.put(reply.size);
  out.put(reply.page_size);
  put_kind_and_server(out, reply.kind, reply.server);
  out.put(reply.attribute);
  out.put(reply.location_type);
  out.put(reply.location_id);
  put_name(out, reply.key);
  return bytes;
}

std::optional<Reply> decode_reply(std::span<const std::uint8_t> bytes) noexcept {
  if (bytes.size() != reply_size) return std::nullopt;
  Reader in(bytes);
  Reply reply;
  if (!take_head(in, reply.op, reply.sequence)) return std::nullopt;
  std::uint16_t reason = 0;
  std::uint16_t flags = 0;
  in.take(reply.code);
  in.take(reason);
  in.take(flags);
  in.take(reply.pid);
  in.take(reply.listed_pid);
  in.take(reply.listed_count);
  in.take(reply.needed);
  in.take(reply.available);
  in.take(reply.device);
  in.take(reply.watch);
  in.take(reply.offset);
  in.take(reply.size);
  in.take(reply.page_size);
  const bool known = take_kind_and_server(in, reply.kind, reply.server);
  in.take(reply.attribute);
  in.take(reply.location_type);
  in.take(reply.location_id);
  take_name(in, reply.key);
  if (!known || reason > static_cast<std::uint16_t>(detail::last_reason) || (flags & ~all_flags) != 0) {
    return std::nullopt;
  }
  reply.reason = static_cast<Reason>(reason);
  reply.read_only = (flags & flag_read_only) != 0;
  reply.p2p_policy = (flags & flag_p2p_policy) != 0;
  reply.unsealed = (flags & flag_unsealed) != 0;
  // A reply either refuses and says why, or describes what can exist.
  if ((reply.code != 0) != (reply.reason != Reason::none)) return std::nullopt;
  if (reply.code == 0 && !describes_something(reply)) return std::nullopt;
  return reply;
}

}  // namespace devshare::host
