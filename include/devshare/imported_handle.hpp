// SPDX-License-Identifier: Apache-2.0
// ImportedHandle: physical memory of another process, not mapped yet. For pools that map several into one range; for a
// single block ImportedMapping::open does everything at once.
#pragma once

#include <devshare/detail/owned.hpp>
#include <devshare/device.hpp>
#include <devshare/imported.hpp>
#include <devshare/mechanism.hpp>
#include <devshare/reservation.hpp>
#include <devshare/result.hpp>
#include <devshare/ticket.hpp>

#include <cstddef>
#include <span>

namespace devshare {

// A reference to an imported handle. Movable, not copyable; one thread at a time. However many there are of one ticket,
// the runtime imports it once (R27). It cannot be exported: only the process that allocated memory can share it (R26).
class DEVSHARE_CONSUMABLE [[nodiscard("the handle is freed when this object ends")]] ImportedHandle {
 public:
  // Takes tickets of handles; one of a key is mechanism_mismatch. The memory is as long as the ticket says: it is mapped
  // once to see, since the runtime compares sizes in no other way.
  // Errors: as ImportedMapping::open.
  // With Populate::now the host runtime maps every page of it wherever it is mapped; the first open of a ticket in this
  // process decides.
  // ACL: aclrtMemImportFromShareableHandle or its V2; for the first of a token aclrtReserveMemAddress, aclrtMapMem,
  // aclrtUnmapMem, aclrtReleaseMemAddress.
  DEVSHARE_API static Result<ImportedHandle> open(const ReceivedTicket& ticket, const Device& device,
                                                  Populate populate = Populate::when_touched) noexcept;
  template <class M, class... Arguments>
  static void open(const Ticket<M>&, Arguments&&...) = delete;  // a process cannot import what it exported
  template <class... Arguments>
  static void open(const TicketBytes&, Arguments&&...) = delete;  // a process cannot import what it exported
  template <class... Arguments>
  static void open(std::span<const std::byte>, Arguments&&...) = delete;  // decode first: ReceivedTicket::decode(bytes)

  // Of the slice that the ticket names; a mapping shows the whole block.
  DEVSHARE_READS std::size_t size() const noexcept { return owned_.holds() ? owned_.value().size : 0; }
  // Of the whole block.
  DEVSHARE_READS std::size_t physical_size() const noexcept {
    return owned_.holds() ? owned_.value().physical_size : 0;
  }
  // Only of an object that was not moved from.
  DEVSHARE_READS Device device() const noexcept { return detail::device_of(owned_.session(), owned_.value().device); }

  // As PhysicalHandle::backing. Of normal pages it does not know which are there: a mapping does.
  DEVSHARE_READS HostBacking backing() const noexcept {
    return owned_.holds() ? detail::backing_of(owned_.session(), owned_.value()) : HostBacking{};
  }

  // Ends this reference; the last one, mappings included, frees the handle. Refused, the handle comes back.
  // Errors: closed, forked, runtime_gone, refused. ACL: aclrtFreePhysical.
  DEVSHARE_API DEVSHARE_CONSUMES Result<void, Refused<ImportedHandle>> close() && noexcept;
  void close() & = delete;       // write std::move(handle).close(): it ends the reference
  void close() const& = delete;  // const, or still inside a Result: make a named object of it first, then close that

  // For the library's own headers.
  DEVSHARE_READS bool holds() const noexcept { return owned_.holds(); }
  DEVSHARE_READS const detail::Owned<detail::PhysicalPolicy>& owned() const noexcept DEVSHARE_LIFETIMEBOUND {
    return owned_;
  }
  DEVSHARE_CONSUMES detail::PhysicalValue release() && noexcept { return owned_.release(); }

 private:
  ImportedHandle(const detail::Session& session, const detail::PhysicalValue& value) noexcept
      : owned_(session, value) {}

  detail::Owned<detail::PhysicalPolicy> owned_;
};

// The two inputs of a refused AddressReservation::map.
struct UnmappedImport {
  AddressReservation range;
  ImportedHandle handle;
};

}  // namespace devshare
