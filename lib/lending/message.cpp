// SPDX-License-Identifier: Apache-2.0
#include "message.hpp"

#include "../core/octets.hpp"

#include <algorithm>

namespace devshare::detail {
namespace {

constexpr std::uint32_t message_magic = 0x4c737644;  // "DvsL"
constexpr std::uint16_t message_version = 1;
constexpr std::size_t header_size = 24;  // magic, version, type, length, request, checksum
constexpr std::size_t checksum_offset = 16;

// One walk over the fields of each type serves writing, reading and measuring: `visit` is called with every field in
// its order on the wire.
template <class M, class Visit>
void walk(M& m, Visit&& visit) noexcept {
  switch (m.type) {
    case MessageType::hello:
      visit(m.pid);
      visit(m.mechanisms);
      return;
    case MessageType::welcome:
      visit(m.pid);
      visit(m.device);
      return;
    case MessageType::borrow:
      visit(m.access);
      visit(m.may_wait);
      visit(m.device);
      visit(m.slice.offset);
      visit(m.slice.size);
      visit(m.name_size);
      visit(m.name_storage);
      return;
    case MessageType::lent:
      visit(m.lease);
      visit(m.generation);
      visit(m.ticket);
      return;
    case MessageType::newer:
      visit(m.lease);
      visit(m.generation);
      return;
    case MessageType::imported:
    case MessageType::returned:
    case MessageType::wanted_back:
    case MessageType::revoked:
      visit(m.lease);
      return;
    case MessageType::refused:
    case MessageType::not_imported:
      visit(m.lease);
      visit(m.error.kind);
      visit(m.error.operation);
      visit(m.error.entry);
      visit(m.error.reason);
      visit(m.error.acl_code);
      visit(m.error.system_errno);
      visit(m.error.needed);
      visit(m.error.available);
      return;
    case MessageType::cancel:
    case MessageType::waiting:
      return;
  }
}

// How a field goes over the wire.
template <class T>
constexpr std::size_t width = sizeof(T);
template <>
constexpr std::size_t width<Mechanisms> = sizeof(std::uint32_t);
template <>
constexpr std::size_t width<bool> = 1;

class Measure {
 public:
  template <class T>
  void operator()(const T&) noexcept {
    size_ += width<T>;
  }
  // Whole words, for the checksum.
  std::size_t padded() const noexcept { return (header_size + size_ + 7) / 8 * 8; }
  std::size_t size() const noexcept { return header_size + size_; }

 private:
  std::size_t size_ = 0;
};

class Write {
 public:
  explicit Write(Writer& out) noexcept : out_(out) {}

  void operator()(const Mechanisms& m) noexcept { out_.number(m.to_message()); }
  void operator()(const AccessMode& a) noexcept { out_.number(static_cast<std::uint8_t>(a)); }
  void operator()(const bool& b) noexcept { out_.number(static_cast<std::uint8_t>(b ? 1 : 0)); }
  template <class T, std::size_t N>
  void operator()(const std::array<T, N>& a) noexcept {
    out_.bytes(std::as_bytes(std::span(a)));
  }
  template <class T>
  void operator()(const T& number) noexcept {
    out_.number(number);
  }

 private:
  Writer& out_;
};

class Read {
 public:
  explicit Read(Reader& in) noexcept : in_(in) {}

  void operator()(Mechanisms& m) noexcept { m = Mechanisms::from_message(in_.number<std::uint32_t>()); }
  void operator()(AccessMode& a) noexcept { a = static_cast<AccessMode>(in_.number<std::uint8_t>()); }
  void operator()(bool& b) noexcept {
    const auto value = in_.number<std::uint8_t>();
    b = value == 1;
    sane_ = sane_ && value <= 1;
  }
  template <class T, std::size_t N>
  void operator()(std::array<T, N>& a) noexcept {
    in_.bytes(std::as_writable_bytes(std::span(a)));
  }
  template <class T>
  void operator()(T& number) noexcept {
    number = in_.number<T>();
  }

  bool sane() const noexcept { return sane_; }

 private:
  Reader& in_;
  bool sane_ = true;
};

std::size_t size_of(const Message& message) noexcept {
  Measure measure;
  walk(message, measure);
  return measure.padded();
}

// What must hold of the fields before anybody uses them.
bool consistent(const Message& m) noexcept {
  if (m.access != AccessMode::read_only && m.access != AccessMode::read_write) return false;
  if (m.type == MessageType::hello || m.type == MessageType::welcome) return m.pid >= 0;
  if (m.type != MessageType::borrow) return true;
  const auto end = m.name_storage.begin() + std::min<std::ptrdiff_t>(m.name_size, longest_offer_name);
  return m.name_size > 0 && m.name_size <= longest_offer_name && m.device >= 0 &&
         std::find(m.name_storage.begin(), end, '\0') == end &&
         std::all_of(end, m.name_storage.end(), [](char c) { return c == '\0'; });
}

bool known(std::uint16_t type) noexcept {
  return type >= static_cast<std::uint16_t>(MessageType::hello) && type <= static_cast<std::uint16_t>(MessageType::revoked);
}

}  // namespace

MessageBytes encode(const Message& message) noexcept {
  MessageBytes out;
  out.size = size_of(message);
  static_assert(header_size + 32 + ticket_size <= longest_message);
  Writer writer(out.storage.data());
  writer.number(message_magic);
  writer.number(message_version);
  writer.number(static_cast<std::uint16_t>(message.type));
  writer.number(static_cast<std::uint32_t>(out.size));
  writer.number(message.request);
  writer.zeros(sizeof(std::uint64_t));
  walk(message, Write(writer));
  writer.zeros(static_cast<std::size_t>(out.storage.data() + out.size - writer.at()));
  Writer(out.storage.data() + checksum_offset).number(checksum_of_words(out.bytes()));
  return out;
}

Decoded decode(std::span<const std::byte> bytes, bool of_borrower, Message& message) noexcept {
  message = {};
  if (bytes.size() < header_size || bytes.size() > longest_message || bytes.size() % 8 != 0) return Decoded::malformed;
  Reader reader(bytes);
  if (reader.number<std::uint32_t>() != message_magic) return Decoded::malformed;
  if (reader.number<std::uint16_t>() != message_version) return Decoded::other_version;
  const auto type = reader.number<std::uint16_t>();
  const auto length = reader.number<std::uint32_t>();
  message.request = reader.number<std::uint32_t>();
  const auto sum = reader.number<std::uint64_t>();
  message.type = static_cast<MessageType>(type);
  if (!known(type) || from_borrower(message.type) != of_borrower || length != bytes.size() ||
      size_of(message) != bytes.size()) {
    return Decoded::malformed;
  }
  MessageBytes copy;
  copy.size = bytes.size();
  std::copy(bytes.begin(), bytes.end(), copy.storage.begin());
  Writer(copy.storage.data() + checksum_offset).zeros(sizeof(std::uint64_t));
  if (checksum_of_words(copy.bytes()) != sum) return Decoded::malformed;

  Read read(reader);
  walk(message, read);
  if (!read.sane() || !reader.zeros(reader.left()) || !consistent(message)) return Decoded::malformed;
  return Decoded::yes;
}

}  // namespace devshare::detail
