// SPDX-License-Identifier: Apache-2.0
// ImportedMapping: memory of another process, usable in this one until it is closed.
#pragma once

#include <devshare/address.hpp>
#include <devshare/detail/owned.hpp>
#include <devshare/device.hpp>
#include <devshare/host_pages.hpp>
#include <devshare/mechanism.hpp>
#include <devshare/peer.hpp>
#include <devshare/result.hpp>
#include <devshare/ticket.hpp>

#include <cstddef>
#include <span>
#include <type_traits>

namespace devshare {

class AddressReservation;
class ImportedHandle;

struct DEVSHARE_API ReadWrite {
  using Byte = std::byte;
  static constexpr AccessMode mode = AccessMode::read_write;
};
struct DEVSHARE_API ReadOnly {
  using Byte = const std::byte;
  static constexpr AccessMode mode = AccessMode::read_only;
};

namespace detail {

// One open import of the process, counted: however often a ticket is opened, the runtime imports once. Or a range in
// which a program maps imported handles one by one.
struct ImportRecord;
struct ImportValue {
  ImportRecord* record = nullptr;
  void* address = nullptr;  // first byte of the slice
  std::size_t size = 0;     // of the slice
  std::int32_t device = -1;
  Mechanism mechanism{};
};
struct ImportPolicy {
  using Value = ImportValue;
  DEVSHARE_API static void abandon(const Value& value) noexcept;
  static const void* identity(const Value& value) noexcept { return value.address; }
  static bool gone(const Value& value) noexcept { return value.record == nullptr; }
  DEVSHARE_API static Result<void> close(const Session& session, Value& value) noexcept;
  DEVSHARE_API static void park(const Value& value, const Error& error) noexcept;
};

DEVSHARE_API Result<ImportValue> open_import(const ReceivedTicket& ticket, const Device& device,
                                             PeerAccess* grant, AccessMode access, Populate populate) noexcept;
DEVSHARE_API bool import_is_for_reading(const Session& session, const ImportValue& value) noexcept;
DEVSHARE_API Result<void> check_import(const Session& session, const ImportValue& value) noexcept;

}  // namespace detail

// An import. `bytes()` is exactly the slice that the ticket names. Movable, not copyable; one thread at a time, though
// any number of objects of one ticket may be used at once: they share one import of the runtime, which is closed with
// the last of them. An object that exists has its memory mapped and accessible.
//
// By key, B must close before A does (R20): if the exporter goes first, check() says exporter_gone, copies fail with
// it, and kernels fault, as on the card. Memory that came by a handle stays as long as anybody holds it (R39).
template <class Access>
class DEVSHARE_CONSUMABLE [[nodiscard("the import is closed when this object ends")]] BasicImportedMapping {
 public:
  // Imports what the ticket names and makes it usable on `device`. Peer access between the two devices is enabled by
  // the runtime, both ways, and stays until the process ends.
  // Errors: self_import, different_host, already_imported, not_authorised, stale_token, exporter_gone, timed_out,
  // peer_access_missing, peer_access_impossible, peer_access_limit, access_mismatch, out_of_memory, fd_limit,
  // mapping_limit, address_space_exhausted, unsupported_by_runtime, no_device_context, runtime_gone, refused.
  // ACL: aclrtIpcMemImportByKey with flag 1; or import, reserve, map and set access of a physical handle, which all
  // happen or none.
  // With Populate::now the host runtime maps every page at once, by the first open of a ticket in this process; the size
  // of the pages is the exporter's choice. backing() says what became of it.
  static Result<BasicImportedMapping> open(const ReceivedTicket& ticket, const Device& device,
                                           Populate populate = Populate::when_touched) noexcept {
    return open_with(ticket, device, nullptr, populate);
  }
  // The same with a grant of the caller, which the import keeps until its last object in this process has ended. By key
  // the runtime then enables nothing itself (flag 0). Refused, the grant ends.
  // Further error: peer_mismatch, the grant is for other devices.
  static Result<BasicImportedMapping> open(const ReceivedTicket& ticket, const Device& device,
                                           DEVSHARE_CONSUMED_PARAMETER PeerAccess access,
                                           Populate populate = Populate::when_touched) noexcept {
    return open_with(ticket, device, &access, populate);
  }
  template <class M, class... Arguments>
  static void open(const Ticket<M>&, Arguments&&...) = delete;  // a process cannot import what it exported
  template <class... Arguments>
  static void open(const TicketBytes&, Arguments&&...) = delete;  // a process cannot import what it exported
  template <class... Arguments>
  static void open(std::span<const std::byte>, Arguments&&...) = delete;  // decode first: ReceivedTicket::decode(bytes)

  DEVSHARE_READS DeviceSpan<typename Access::Byte> bytes() const& noexcept DEVSHARE_LIFETIMEBOUND {
    if (!import_.holds()) return {};
    return {DevicePtr<typename Access::Byte>::from_address(import_.value().address), import_.value().size};
  }
  DeviceSpan<typename Access::Byte> bytes() && = delete;  // the import ends with the temporary: keep it in a named object

  DEVSHARE_READS std::size_t size() const noexcept { return import_.holds() ? import_.value().size : 0; }
  DEVSHARE_READS Mechanism mechanism() const noexcept { return import_.value().mechanism; }
  // Only of an object that was not moved from.
  DEVSHARE_READS Device device() const noexcept { return detail::device_of(import_.session(), import_.value().device); }

  // The pages of the machine that the memory is in, where the runtime keeps it in the machine's memory, and whether all
  // are mapped in this process.
  DEVSHARE_READS HostBacking backing() const noexcept {
    if (!import_.holds()) return {};
    return detail::backing_at(import_.session(), import_.value().address, import_.value().size);
  }

  // Maps one more imported handle behind what is mapped, in a mapping that AddressReservation::map made. Refused, the
  // handle comes back and the mapping is what it was.
  // Errors: invalid_argument (it came from open()), out_of_range (the range has no room), mapping_limit, closed,
  // forked, runtime_gone, refused. ACL: aclrtMapMem, aclrtMemSetAccess.
  DEVSHARE_READS DEVSHARE_API Result<void, Refused<ImportedHandle>> extend(
      DEVSHARE_CONSUMED_PARAMETER ImportedHandle&& handle) & noexcept;

  // Whether something stronger than the type keeps this process from writing: the kernel, on the host runtime, where
  // every import of the ticket in this process is for reading. No card does; there only the type is in the way.
  DEVSHARE_READS bool access_enforced() const noexcept {
    return detail::import_is_for_reading(import_.session(), import_.value());
  }

  // Whether the bytes are still there. Errors: exporter_gone, closed, forked, runtime_gone.
  DEVSHARE_READS Result<void> check() const noexcept {
    return detail::check_import(import_.session(), import_.value());
  }

  // Ends this reference; the last one closes the import. Refused, it comes back inside the error, but for a handle that
  // cannot be freed once it is unmapped, which is parked. A destructor that cannot close an import parks it
  // (Runtime::parked), and the next import of this process tries to close it again.
  // Errors: closed, forked, runtime_gone, in_use, refused.
  // ACL: aclrtIpcMemClose; or aclrtUnmapMem, aclrtReleaseMemAddress, aclrtFreePhysical.
  DEVSHARE_CONSUMES Result<void, Refused<BasicImportedMapping>> close() && noexcept {
    return detail::close_or_give_back(*this, import_, Operation::close_import);
  }
  void close() & = delete;       // write std::move(mapping).close(): it ends the import
  void close() const& = delete;  // const, or still inside a Result: make a named object of it first, then close that

  // For the library's own headers.
  detail::Owned<detail::ImportPolicy>& owned() noexcept { return import_; }

 private:
  friend class AddressReservation;
  static Result<BasicImportedMapping> open_with(const ReceivedTicket& ticket, const Device& device,
                                                PeerAccess* grant, Populate populate) noexcept {
    auto opened = detail::open_import(ticket, device, grant, Access::mode, populate);
    if (!opened) [[unlikely]] return opened.error();
    return BasicImportedMapping(device.session(), *opened);
  }
  BasicImportedMapping(const detail::Session& session, const detail::ImportValue& value) noexcept
      : import_(session, value) {}

  detail::Owned<detail::ImportPolicy> import_;
};

using ImportedMapping = BasicImportedMapping<ReadWrite>;
using ImportedConstMapping = BasicImportedMapping<ReadOnly>;

}  // namespace devshare
