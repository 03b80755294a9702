// SPDX-License-Identifier: Apache-2.0
// Tickets of what synchronises processes: NotifyTicket and EventTicket, issued; ReceivedNotifyTicket and
// ReceivedEventTicket, decoded from a message. Different types, so that a process cannot import what it has exported, nor
// a notify as an event.
#pragma once

#include <devshare/ticket.hpp>

#include <array>
#include <cstddef>
#include <span>

namespace devshare {

// The length of every such ticket of this version.
inline constexpr std::size_t sync_ticket_size = 192;

namespace detail {

enum class SyncKind : std::uint32_t {  // the magic of the ticket
  notify = 0x4e737644,                 // "DvsN"
  event = 0x45737644,                  // "DvsE"
};

struct SyncTicketFields {
  std::int32_t owner_device = -1;  // as the driver numbers it
  ExporterIdentity exporter;
  std::array<std::byte, acl::ipc_key_size> name{};  // the key of a notify, or the handle of an event
};

}  // namespace detail

// Proof that an importer may import. A value; its bytes are binary, to be sent as they are. Deliberately no range: bytes
// that this process issued do not convert to the span that decode takes.
template <detail::SyncKind kind>
class SyncTicket {
 public:
  const std::byte* data() const noexcept DEVSHARE_LIFETIMEBOUND { return bytes_.data(); }
  static constexpr std::size_t size() noexcept { return sync_ticket_size; }

 private:
  friend class SharedNotify;
  friend class SharedEvent;
  explicit SyncTicket(const std::array<std::byte, sync_ticket_size>& bytes) noexcept : bytes_(bytes) {}

  std::array<std::byte, sync_ticket_size> bytes_;
};

// A well-formed ticket that came from another process. A value.
template <detail::SyncKind kind>
class ReceivedSyncTicket {
 public:
  // Takes exactly sync_ticket_size bytes. Errors: malformed_token, version_mismatch.
  DEVSHARE_API static Result<ReceivedSyncTicket> decode(std::span<const std::byte> bytes) noexcept;
  template <detail::SyncKind other>
  static Result<ReceivedSyncTicket> decode(const SyncTicket<other>&) = delete;  // a process cannot import what it exported

  std::int32_t owner_device() const noexcept { return fields_.owner_device; }  // as the driver numbers it
  const ExporterIdentity& exporter() const noexcept DEVSHARE_LIFETIMEBOUND { return fields_.exporter; }

  // For the library itself.
  const detail::SyncTicketFields& fields() const noexcept DEVSHARE_LIFETIMEBOUND { return fields_; }

 private:
  explicit ReceivedSyncTicket(const detail::SyncTicketFields& fields) noexcept : fields_(fields) {}

  detail::SyncTicketFields fields_;
};

using NotifyTicket = SyncTicket<detail::SyncKind::notify>;
using EventTicket = SyncTicket<detail::SyncKind::event>;
using ReceivedNotifyTicket = ReceivedSyncTicket<detail::SyncKind::notify>;
using ReceivedEventTicket = ReceivedSyncTicket<detail::SyncKind::event>;

}  // namespace devshare
