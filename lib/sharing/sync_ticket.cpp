// SPDX-License-Identifier: Apache-2.0
#include "sync_ticket.hpp"

#include "../core/octets.hpp"
#include "../core/process_identity.hpp"

namespace devshare {
namespace detail {
namespace {

constexpr std::uint16_t byte_order_mark = 0x0102;
constexpr std::uint16_t swapped_byte_order_mark = 0x0201;
constexpr std::uint16_t sync_version = 1;
constexpr std::size_t checksum_size = 8;
constexpr std::size_t padding = 63;  // behind the name
static_assert((sync_ticket_size - checksum_size) % sizeof(std::uint64_t) == 0);

Error malformed(std::size_t got) noexcept {
  return Error(Errc::malformed_token, Operation::decode_ticket, {.needed = sync_ticket_size, .available = got});
}

}  // namespace

std::array<std::byte, sync_ticket_size> encode_sync_ticket(SyncKind kind, const SyncTicketFields& fields) noexcept {
  std::array<std::byte, sync_ticket_size> bytes{};
  Writer out(bytes.data());
  out.number(static_cast<std::uint32_t>(kind));
  out.number(byte_order_mark);
  out.number(sync_version);
  out.number(static_cast<std::uint32_t>(sync_ticket_size));
  out.number(fields.owner_device);
  out.bytes(fields.exporter.boot_id);
  out.number(fields.exporter.pid_namespace);
  out.number(fields.exporter.start_time);
  out.number(fields.exporter.pid);
  out.zeros(4);
  out.bytes(fields.name);
  out.zeros(padding);
  out.number(checksum_of_words(std::span(bytes).first(sync_ticket_size - checksum_size)));
  return bytes;
}

Result<SyncTicketFields> decode_sync_ticket(SyncKind kind, std::span<const std::byte> bytes) noexcept {
  if (bytes.size() != sync_ticket_size) return malformed(bytes.size());
  Reader in(bytes);
  const auto magic = in.number<std::uint32_t>();
  const auto order = in.number<std::uint16_t>();
  const auto version = in.number<std::uint16_t>();
  const bool ours = magic == static_cast<std::uint32_t>(kind) && order == byte_order_mark;
  if (order == swapped_byte_order_mark || (ours && version != sync_version)) {
    return Error(Errc::version_mismatch, Operation::decode_ticket, {.needed = sync_version, .available = version});
  }
  if (!ours) return malformed(bytes.size());
  SyncTicketFields fields;
  const bool length_right = in.number<std::uint32_t>() == sync_ticket_size;
  fields.owner_device = in.number<std::int32_t>();
  in.bytes(fields.exporter.boot_id);
  fields.exporter.pid_namespace = in.number<std::uint64_t>();
  fields.exporter.start_time = in.number<std::uint64_t>();
  fields.exporter.pid = in.number<std::int32_t>();
  bool unused_zero = in.zeros(4);
  in.bytes(fields.name);
  unused_zero = in.zeros(padding) && unused_zero;
  const bool sum_right = in.number<std::uint64_t>() == checksum_of_words(bytes.first(sync_ticket_size - checksum_size));
  if (!length_right || !unused_zero || !sum_right || fields.owner_device < 0 || fields.exporter.pid <= 0) {
    return malformed(bytes.size());
  }
  return fields;
}

Result<void> check_sync_ticket(const SyncTicketFields& fields, const Device& device, Operation operation) noexcept {
  DEVSHARE_TRY(self, own_identity(operation));
  const auto no = [&](Errc kind) {
    return Error(kind, operation,
                 {.device = device.number(), .peer_device = fields.owner_device, .pid = fields.exporter.pid});
  };
  if (fields.exporter == self) return no(Errc::self_import);
  if (fields.exporter.boot_id != self.boot_id) return no(Errc::different_host);
  return {};
}

}  // namespace detail

template <detail::SyncKind kind>
Result<ReceivedSyncTicket<kind>> ReceivedSyncTicket<kind>::decode(std::span<const std::byte> bytes) noexcept {
  DEVSHARE_TRY(fields, detail::decode_sync_ticket(kind, bytes));
  return ReceivedSyncTicket(fields);
}
template class ReceivedSyncTicket<detail::SyncKind::notify>;
template class ReceivedSyncTicket<detail::SyncKind::event>;

}  // namespace devshare
