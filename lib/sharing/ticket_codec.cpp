// SPDX-License-Identifier: Apache-2.0
#include "ticket_codec.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

namespace devshare {
namespace detail {
namespace {

// Little-endian, whatever the machine: the byte order mark then reads 0x0102 for us and 0x0201 for a writer that got
// it wrong.
constexpr std::uint32_t ticket_magic = 0x54737644;  // "DvsT"
constexpr std::uint16_t byte_order_mark = 0x0102;
constexpr std::uint16_t swapped_byte_order_mark = 0x0201;
constexpr std::uint16_t ticket_version = 1;
constexpr std::uint8_t flag_unrestricted = 1;
constexpr std::size_t reserved_size = 16;
constexpr std::size_t checksum_size = 8;

class Writer {
 public:
  explicit Writer(TicketBytes& bytes) noexcept : at_(bytes.storage.data()) {}

  template <class T>
  void number(T value) noexcept {
    if constexpr (std::endian::native == std::endian::little) {
      std::memcpy(at_, &value, sizeof(T));
      at_ += sizeof(T);
    } else {
      auto bits = static_cast<std::uint64_t>(value);
      for (std::size_t i = 0; i < sizeof(T); ++i, bits >>= 8) *at_++ = static_cast<std::byte>(bits & 0xff);
    }
  }
  template <std::size_t N>
  void array(const std::array<std::byte, N>& bytes) noexcept {
    at_ = std::copy(bytes.begin(), bytes.end(), at_);
  }
  void zeros(std::size_t count) noexcept { at_ = std::fill_n(at_, count, std::byte{0}); }

 private:
  std::byte* at_;
};

class Reader {
 public:
  explicit Reader(std::span<const std::byte> bytes) noexcept : at_(bytes.data()), end_(at_ + bytes.size()) {}

  template <class T>
  T number() noexcept {
    if constexpr (std::endian::native == std::endian::little) {
      T value;
      std::memcpy(&value, at_, sizeof(T));
      at_ += sizeof(T);
      return value;
    }
    std::uint64_t bits = 0;
    for (std::size_t i = 0; i < sizeof(T); ++i) bits |= std::to_integer<std::uint64_t>(*at_++) << (8 * i);
    return static_cast<T>(bits);
  }
  template <std::size_t N>
  void array(std::array<std::byte, N>& bytes) noexcept {
    std::copy_n(at_, N, bytes.begin());
    at_ += N;
  }
  std::size_t left() const noexcept { return static_cast<std::size_t>(end_ - at_); }
  bool zeros(std::size_t count) noexcept {
    const bool all = std::all_of(at_, at_ + count, [](std::byte b) { return b == std::byte{0}; });
    at_ += count;
    return all;
  }

 private:
  const std::byte* at_;
  const std::byte* end_;
};

// Of whole words, since both ends compute it for every ticket. Each step is a bijection of the state, so no change
// inside one word goes unseen, and the shift lets the upper bits reach the lower ones, so that two changes do not cancel.
// Against damage, not against malice: a forged ticket still needs a key that the exporter knows.
std::uint64_t checksum(std::span<const std::byte> bytes) noexcept {
  static_assert((ticket_size - checksum_size) % sizeof(std::uint64_t) == 0);
  std::uint64_t sum = 0xcbf29ce484222325;
  for (Reader in(bytes); in.left() != 0;) {
    sum = (sum ^ in.number<std::uint64_t>()) * 0x9e3779b97f4a7c15;
    sum ^= sum >> 32;
  }
  return sum;
}

bool known(Mechanism mechanism) noexcept { return mechanism >= Mechanism::by_key && mechanism <= Mechanism::fabric; }
bool known(AccessMode access) noexcept { return access == AccessMode::read_only || access == AccessMode::read_write; }

std::size_t payload_size_of(Mechanism mechanism) noexcept {
  switch (mechanism) {
    case Mechanism::by_key: return acl::ipc_key_size;
    case Mechanism::v1:
    case Mechanism::v2: return sizeof(std::uint64_t);
    case Mechanism::fabric: return sizeof(acl::aclrtMemFabricHandle);
  }
  return 0;
}

// What must hold of the numbers before anybody computes with them.
bool consistent(const TicketFields& fields) noexcept {
  return fields.block_size != 0 && fields.slice_size != 0 && fields.slice_offset <= fields.block_size &&
         fields.slice_size <= fields.block_size - fields.slice_offset && fields.owner_device >= 0 &&
         fields.payload_size == payload_size_of(fields.mechanism) && fields.exporter.pid > 0;
}

Error malformed(std::size_t needed, std::size_t got) noexcept {
  return Error(Errc::malformed_token, Operation::decode_ticket, {.needed = needed, .available = got});
}

}  // namespace

TicketBytes encode_ticket(const TicketFields& fields) noexcept {
  TicketBytes bytes{};
  Writer out(bytes);
  out.number(ticket_magic);
  out.number(byte_order_mark);
  out.number(ticket_version);
  out.number(static_cast<std::uint32_t>(ticket_size));
  out.number(static_cast<std::uint8_t>(fields.mechanism));
  out.number(static_cast<std::uint8_t>(fields.access));
  out.number(fields.unrestricted ? flag_unrestricted : std::uint8_t{0});
  out.number(fields.payload_size);
  out.number(fields.owner_device);
  out.zeros(4);
  out.number(fields.block_size);
  out.number(fields.slice_offset);
  out.number(fields.slice_size);
  out.array(fields.nonce);
  out.array(fields.exporter.boot_id);
  out.number(fields.exporter.pid_namespace);
  out.number(fields.exporter.pid);
  out.zeros(4);
  out.number(fields.exporter.start_time);
  out.array(fields.payload);
  out.zeros(reserved_size);
  out.number(checksum({bytes.storage.data(), ticket_size - checksum_size}));
  return bytes;
}

Result<TicketFields> decode_ticket(std::span<const std::byte> bytes) noexcept {
  if (bytes.size() != ticket_size) return malformed(ticket_size, bytes.size());
  Reader in(bytes);
  const auto magic = in.number<std::uint32_t>();
  const auto order = in.number<std::uint16_t>();
  const auto version = in.number<std::uint16_t>();
  if (order == swapped_byte_order_mark || (magic == ticket_magic && order == byte_order_mark && version != ticket_version)) {
    return Error(Errc::version_mismatch, Operation::decode_ticket, {.needed = ticket_version, .available = version});
  }
  if (magic != ticket_magic || order != byte_order_mark) return malformed(ticket_size, bytes.size());

  TicketFields fields;
  const bool length_right = in.number<std::uint32_t>() == ticket_size;
  fields.mechanism = static_cast<Mechanism>(in.number<std::uint8_t>());
  fields.access = static_cast<AccessMode>(in.number<std::uint8_t>());
  const auto flags = in.number<std::uint8_t>();
  fields.unrestricted = (flags & flag_unrestricted) != 0;
  fields.payload_size = in.number<std::uint8_t>();
  fields.owner_device = in.number<std::int32_t>();
  bool unused_zero = in.zeros(4);
  fields.block_size = in.number<std::uint64_t>();
  fields.slice_offset = in.number<std::uint64_t>();
  fields.slice_size = in.number<std::uint64_t>();
  in.array(fields.nonce);
  in.array(fields.exporter.boot_id);
  fields.exporter.pid_namespace = in.number<std::uint64_t>();
  fields.exporter.pid = in.number<std::int32_t>();
  unused_zero = in.zeros(4) && unused_zero;
  fields.exporter.start_time = in.number<std::uint64_t>();
  in.array(fields.payload);
  unused_zero = in.zeros(reserved_size) && unused_zero;
  const bool sum_right = in.number<std::uint64_t>() == checksum(bytes.first(ticket_size - checksum_size));
  if (!length_right || !sum_right || !unused_zero || (flags & ~flag_unrestricted) != 0 || !known(fields.mechanism) ||
      !known(fields.access) || !consistent(fields)) {
    return malformed(ticket_size, bytes.size());
  }
  return fields;
}

}  // namespace detail

Result<ReceivedTicket> ReceivedTicket::decode(std::span<const std::byte> bytes) noexcept {
  auto fields = detail::decode_ticket(bytes);
  if (!fields) return fields.error();
  return ReceivedTicket(*fields);
}

}  // namespace devshare
