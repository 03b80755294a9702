// SPDX-License-Identifier: Apache-2.0
// Ticket: what an exporter issues. ReceivedTicket: what an importer decoded from a message. Two types, so that a
// process cannot import what it has itself exported.
#pragma once

#include <devshare/address.hpp>
#include <devshare/mechanism.hpp>
#include <devshare/result.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace devshare {

// The length of every ticket of this version: fixed, so that a receiver knows what to read before it has read any.
inline constexpr std::size_t ticket_size = 256;

// A ticket as bytes, to be sent as they are: they are binary, not text (R61). Deliberately no range: bytes that this
// process issued do not convert to the span that ReceivedTicket::decode takes.
struct TicketBytes {
  std::array<std::byte, ticket_size> storage;

  const std::byte* data() const noexcept DEVSHARE_LIFETIMEBOUND { return storage.data(); }
  static constexpr std::size_t size() noexcept { return ticket_size; }
};

// The process that issued a ticket, in a form that is not reused: pids are, the four together are not.
struct ExporterIdentity {
  std::array<std::byte, 16> boot_id{};   // of the machine, new at each boot
  std::uint64_t pid_namespace = 0;       // inode of the namespace the pid belongs to
  std::int32_t pid = 0;
  std::uint64_t start_time = 0;          // of the process, in clock ticks since boot

  friend bool operator==(const ExporterIdentity&, const ExporterIdentity&) noexcept = default;
};

namespace detail {

// What a ticket says, decoded.
struct TicketFields {
  Mechanism mechanism{};
  AccessMode access{};
  bool unrestricted = false;
  std::uint8_t payload_size = 0;
  std::int32_t owner_device = -1;
  std::uint64_t block_size = 0;
  std::uint64_t slice_offset = 0;
  std::uint64_t slice_size = 0;
  std::array<std::byte, 16> nonce{};     // tells two exports apart, whatever the mechanism reuses
  ExporterIdentity exporter;
  std::array<std::byte, 128> payload{};  // the mechanism's own name of the memory, e.g. the 65 bytes of a key
};

template <class M>
struct TicketOffice;

}  // namespace detail

// Proof that an importer was admitted, or that nobody needs to be: the only source of bytes to send. A value. The
// ticket does not keep the memory alive: it goes stale when its key is closed.
template <class M>
class Ticket {
 public:
  const TicketBytes& bytes() const& noexcept DEVSHARE_LIFETIMEBOUND { return bytes_; }
  TicketBytes bytes() && noexcept { return bytes_; }

 private:
  friend struct detail::TicketOffice<M>;  // of an export that has admitted somebody, or asks nobody
  explicit Ticket(const TicketBytes& bytes) noexcept : bytes_(bytes) {}

  TicketBytes bytes_;
};

using KeyTicket = Ticket<by_key>;

// A well-formed ticket that came from another process. A value; any thread.
class ReceivedTicket {
 public:
  // Takes exactly ticket_size bytes. Every malformed record is refused here, before any runtime call.
  // Errors: malformed_token, version_mismatch.
  DEVSHARE_API static Result<ReceivedTicket> decode(std::span<const std::byte> bytes) noexcept;
  template <class M>
  static Result<ReceivedTicket> decode(const Ticket<M>&) = delete;    // a process cannot import what it exported
  static Result<ReceivedTicket> decode(const TicketBytes&) = delete;  // a process cannot import what it exported

  Mechanism mechanism() const noexcept { return fields_.mechanism; }
  AccessMode access() const noexcept { return fields_.access; }
  bool unrestricted() const noexcept { return fields_.unrestricted; }
  std::size_t size() const noexcept { return static_cast<std::size_t>(fields_.slice_size); }      // bytes of the slice
  std::size_t offset() const noexcept { return static_cast<std::size_t>(fields_.slice_offset); }  // of it in the block
  std::size_t block_size() const noexcept { return static_cast<std::size_t>(fields_.block_size); }
  std::int32_t owner_device() const noexcept { return fields_.owner_device; }  // as the driver numbers it
  const ExporterIdentity& exporter() const noexcept DEVSHARE_LIFETIMEBOUND { return fields_.exporter; }

  // For the library itself.
  const detail::TicketFields& fields() const noexcept DEVSHARE_LIFETIMEBOUND { return fields_; }

 private:
  explicit ReceivedTicket(const detail::TicketFields& fields) noexcept : fields_(fields) {}

  detail::TicketFields fields_;
};

}  // namespace devshare
