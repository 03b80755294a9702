// SPDX-License-Identifier: Apache-2.0
#include "ticket_codec.hpp"

#include "../core/octets.hpp"

namespace devshare {
namespace detail {
namespace {

// The byte order mark reads 0x0102 for us and 0x0201 for a writer that got it wrong.
constexpr std::uint32_t ticket_magic = 0x54737644;  // "DvsT"
constexpr std::uint16_t byte_order_mark = 0x0102;
constexpr std::uint16_t swapped_byte_order_mark = 0x0201;
constexpr std::uint16_t ticket_version = 1;
constexpr std::uint8_t flag_unrestricted = 1;
constexpr std::size_t reserved_size = 16;
constexpr std::size_t checksum_size = 8;

// Computed for every ticket, at both ends.
std::uint64_t checksum(std::span<const std::byte> bytes) noexcept {
  static_assert((ticket_size - checksum_size) % sizeof(std::uint64_t) == 0);
  return checksum_of_words(bytes);
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
  Writer out(bytes.storage.data());
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
  out.bytes(fields.nonce);
  out.bytes(fields.exporter.boot_id);
  out.number(fields.exporter.pid_namespace);
  out.number(fields.exporter.pid);
  out.zeros(4);
  out.number(fields.exporter.start_time);
  out.bytes(fields.payload);
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
  in.bytes(fields.nonce);
  in.bytes(fields.exporter.boot_id);
  fields.exporter.pid_namespace = in.number<std::uint64_t>();
  fields.exporter.pid = in.number<std::int32_t>();
  unused_zero = in.zeros(4) && unused_zero;
  fields.exporter.start_time = in.number<std::uint64_t>();
  in.bytes(fields.payload);
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
