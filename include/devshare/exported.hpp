// SPDX-License-Identifier: Apache-2.0
// Exported: memory that other processes may import, and the key or token by which they do.
//
//   DEVSHARE_TRY(key, export_key(std::move(memory)));                  // the key now owns the memory
//   DEVSHARE_TRY(ticket, key.admit(BarePid::from_peer_message(n)));    // the only way to bytes that can be sent
//   ... send ticket.bytes(), wait until every importer has closed ...
//   DEVSHARE_TRY(memory, std::move(key).close());                      // and gives it back
//
//   DEVSHARE_TRY(token, export_handle<v2>(std::move(mapping)));        // the same for physical memory
#pragma once

#include <devshare/address.hpp>
#include <devshare/detail/owned.hpp>
#include <devshare/device.hpp>
#include <devshare/mapping.hpp>
#include <devshare/mechanism.hpp>
#include <devshare/memory.hpp>
#include <devshare/physical.hpp>
#include <devshare/process.hpp>
#include <devshare/result.hpp>
#include <devshare/ticket.hpp>

#include <concepts>
#include <new>
#include <span>
#include <type_traits>

namespace devshare {

// An engine opts its own block type in by specialising this to true for it. The type then owns one whole allocation of
// aclrtMalloc and offers `DeviceSpan<std::byte> bytes()` and `Device device()`; it is kept alive by being owned.
template <class O>
inline constexpr bool is_key_exportable = false;
template <>
inline constexpr bool is_key_exportable<DeviceMemory> = true;
template <>
inline constexpr bool is_key_exportable<UnownedMemory> = true;

namespace detail {

// One live export of the runtime: a pointer to an immutable record in the library.
struct ExportRecord;
struct ExportValue {
  ExportRecord* record = nullptr;
};
struct ExportPolicy {
  using Value = ExportValue;
  DEVSHARE_API static void abandon(const Value& value) noexcept;
  DEVSHARE_API static const void* identity(const Value& value) noexcept;
  DEVSHARE_API static Result<void> close(const Session& session, const Value& value) noexcept;
};

DEVSHARE_API Result<ExportValue> open_key_export(const Device& device, void* address, std::size_t size,
                                                 bool unrestricted) noexcept;
DEVSHARE_API Result<ExportValue> open_handle_export(const PhysicalHandle& handle, Mechanism kind,
                                                    bool unrestricted) noexcept;
DEVSHARE_API Result<ExportValue> open_handle_export(const Mapping& mapping, Mechanism kind, bool unrestricted) noexcept;

// The only two ways to a ticket: its process is admitted, or it asks for none.
template <class M>
struct TicketOffice {
  DEVSHARE_API static Result<Ticket<M>> admit(const Owned<ExportPolicy>& owned, std::span<const BarePid> pids,
                                              Slice slice, AccessMode access) noexcept;
  DEVSHARE_API static Result<Ticket<M>> issue(const Owned<ExportPolicy>& owned, Slice slice,
                                              AccessMode access) noexcept;
};

template <class Owner>
concept HasBytes = requires(Owner& owner) {
  { owner.bytes() } -> std::convertible_to<DeviceSpan<std::byte>>;
};
template <class Owner>
std::size_t bytes_held(Owner& owner) noexcept {
  if constexpr (HasBytes<Owner>) {
    return owner.bytes().size();
  } else {
    return owner.size();
  }
}

template <class P>
concept NamesNoProcess = !std::is_convertible_v<P, BarePid> && !std::is_convertible_v<P, std::span<const BarePid>>;

}  // namespace detail

// An export of M (by_key, v1, v2, fabric), of memory held by Owner, for Listed importers or Unrestricted. Movable, not copyable.
// admit() and ticket() may be called from several threads at once; everything else one thread at a time. Moved from,
// it answers `closed`.
//
// ACL tells an exporter nothing about its importers. By key, close() must come after the last of them has closed (R20),
// and the program must see to that itself. A handle may be closed once they have imported: they keep its memory.
// Importers map the whole block: a slice is a view of it, not a wall.
//
// A handle is exported once for its life (R27), which close() does not undo: exported again in the same way it has the
// same token, with all that were admitted to it; in another way it is refused as already_exported_as.
//
// The destructor closes the key, then lets Owner end. If the key cannot be closed the memory is parked, not freed
// (Runtime::parked): leaked bytes are better than foreign ones.
template <class M, class Owner, class Admission = Listed>
class DEVSHARE_CONSUMABLE [[nodiscard("the export ends when this object ends")]] Exported {
 public:
  static_assert(std::is_nothrow_move_constructible_v<Owner> && std::is_nothrow_move_assignable_v<Owner>,
                "a refused step must be able to give its object back");

  Exported(const Exported&) = delete;             // a key has one owner: std::move it
  Exported& operator=(const Exported&) = delete;  // a key has one owner: std::move it
  Exported(Exported&&) noexcept = default;
  Exported& operator=(Exported&& other) noexcept {
    Exported taken(std::move(other));
    std::swap(owner_, taken.owner_);
    std::swap(export_, taken.export_);
    return *this;
  }
  ~Exported() {
    if (!export_.holds()) return;
    end();
  }

  // Admits a process, or several, and issues the ticket for them: for the whole block, or for a slice of it. The
  // importer must have started before it is admitted (R15); a pid stays admitted until the key is closed. A ticket for
  // reading opens as an ImportedConstMapping only: a promise of the importer's devshare, since ACL has no such import.
  // Errors: out_of_range (the slice leaves the block), invalid_argument (no pid), stale_token, closed, forked,
  // runtime_gone, refused. ACL: aclrtIpcMemSetImportPid, once for every 31 pids (R16); for a handle
  // aclrtMemSetPidToShareableHandle or its V2. If one of several such calls is refused, the pids of those before it are
  // admitted, and nothing undoes that: Detail::available says how many of the `needed` they are, the first ones of the
  // span, and Detail::pid is the next. Admitting the rest, or all of them again, is right then.
  DEVSHARE_READS Result<Ticket<M>> admit(BarePid pid, Slice slice = {}, AccessMode access = AccessMode::read_write) &
    requires std::same_as<Admission, Listed>
  {
    return admit(std::span<const BarePid>(&pid, 1), slice, access);
  }
  DEVSHARE_READS Result<Ticket<M>> admit(std::span<const BarePid> pids, Slice slice = {},
                                          AccessMode access = AccessMode::read_write) &
    requires std::same_as<Admission, Listed>
  {
    return detail::TicketOffice<M>::admit(export_, pids, slice, access);
  }
  template <class... Arguments>
  void admit(Arguments&&...) && = delete;  // the key would end before its ticket is used: keep it in a named object
  template <class A = Admission>
    requires std::same_as<A, Listed>
  void admit() & = delete;  // admit nobody: name the process that may import, by its BarePid
  template <class A = Admission>  // {} is a null pointer rather than a span, which would name nobody at run time
    requires std::same_as<A, Listed>
  void admit(std::nullptr_t, Slice = {}, AccessMode = {}) & = delete;  // admit nobody: name the process that may import, by its BarePid
  template <detail::NamesNoProcess P>
    requires std::same_as<Admission, Listed>
  void admit(P&&, Slice = {}, AccessMode = {}) & = delete;  // only a BarePid names a process: BarePid::from_peer_message(n)
  template <class... Arguments>
    requires std::same_as<Admission, Unrestricted>
  void admit(Arguments&&...) & = delete;  // this export asks nobody (R13): take ticket()

  // The ticket of an export that asks nobody. Errors: out_of_range, closed, forked, runtime_gone.
  DEVSHARE_READS Result<Ticket<M>> ticket(Slice slice = {}, AccessMode access = AccessMode::read_write) const&
    requires std::same_as<Admission, Unrestricted>
  {
    return detail::TicketOffice<M>::issue(export_, slice, access);
  }
  template <class A = Admission>
    requires std::same_as<A, Listed>
  void ticket(Slice = {}, AccessMode = {}) const& = delete;  // nobody was admitted: a ticket comes from admit(pid) (R13)
  void ticket(Slice = {}, AccessMode = {}) && = delete;  // the key would end before its ticket is used: keep it in a named object

  // The exporter goes on using its memory.
  DEVSHARE_READS const Owner& owner() const& noexcept DEVSHARE_LIFETIMEBOUND { return owner_; }
  const Owner& owner() && = delete;  // the memory ends with the temporary: keep it in a named object
  DEVSHARE_READS DeviceSpan<std::byte> bytes() & noexcept DEVSHARE_LIFETIMEBOUND
    requires detail::HasBytes<Owner>
  {
    return owner_.bytes();
  }
  template <class O = Owner>
    requires(!detail::HasBytes<O>)
  void bytes() & = delete;  // a handle has no address: export a Mapping of it, or map it
  DeviceSpan<std::byte> bytes() && = delete;  // the memory ends with the temporary: keep it in a named object
  DEVSHARE_READS Device device() const noexcept { return owner_.device(); }

  // Closes the key and gives the memory back. Every importer must have closed before (R20). If the runtime refuses,
  // the export comes back in the error, whole. For a handle nothing is called: what it was exported as, it stays.
  // Errors: closed, forked, runtime_gone, refused. ACL: aclrtIpcMemClose.
  DEVSHARE_CONSUMES Result<Owner, Refused<Exported>> close() && noexcept {
    if (!export_.holds() || !export_.session().alive()) [[unlikely]] {
      return Refused<Exported>(detail::unusable(export_.session(), Operation::close_export), std::move(*this));
    }
    if (auto closed = detail::ExportPolicy::close(export_.session(), export_.value()); !closed) [[unlikely]] {
      return Refused<Exported>(closed.error(), std::move(*this));
    }
    export_.release();
    return std::move(owner_);
  }
  void close() & = delete;       // write std::move(key).close(): it ends the export and gives the memory back
  void close() const& = delete;  // const, or still inside a Result: make a named object of it first, then close that

  // For the library's own headers.
  Exported(Owner&& owner, const detail::Session& session, detail::ExportValue value) noexcept
      : owner_(std::move(owner)), export_(session, value) {}

 private:
  // What is kept when the runtime refuses to close: the memory and the record of its key.
  struct Kept {
    Owner owner;
    detail::ExportValue key;
  };

  void end() noexcept {
    const detail::Session session = export_.session();
    if (!session.alive()) {
      if (auto closed = export_.close(Operation::close_export); !closed) detail::report_outlived(session);
      return;
    }
    auto closed = detail::ExportPolicy::close(session, export_.value());
    const detail::ExportValue value = export_.release();
    if (closed) [[likely]] return;
    const std::size_t bytes = detail::bytes_held(owner_);
    detail::park(new (std::nothrow) Kept{std::move(owner_), value}, bytes, closed.error());
  }

  Owner owner_;
  detail::Owned<detail::ExportPolicy> export_;
};

template <class Owner = DeviceMemory, class Admission = Listed>
using SharedMemoryKey = Exported<by_key, Owner, Admission>;
template <class K, class Owner = Mapping, class Admission = Listed>
using ExportToken = Exported<K, Owner, Admission>;

namespace detail {

template <class Admission, class Owner>
Result<SharedMemoryKey<Owner, Admission>, Refused<Owner>> export_key_as(Owner&& owner) noexcept {
  const Device device = owner.device();
  const DeviceSpan<std::byte> block = owner.bytes();
  auto opened = open_key_export(device, block.data().address(), block.size(), std::is_same_v<Admission, Unrestricted>);
  if (!opened) [[unlikely]] return Refused<Owner>(opened.error(), std::move(owner));
  return SharedMemoryKey<Owner, Admission>(std::move(owner), device.session(), *opened);
}

template <class O>
concept KeyExportable = !std::is_reference_v<O> && is_key_exportable<O>;

}  // namespace detail

// Exports a whole allocation by key, to processes that admit() will name. The memory goes into the key; a refusal
// brings it back. The exported address must be the start of aclrtMalloc memory (R10).
// Errors: not_exportable, out_of_range (the range leaves the allocation), closed, forked, runtime_gone, fd_limit,
// backend_unavailable, unsupported_by_runtime, refused.
// ACL: aclrtIpcMemGetExportKey.
template <detail::KeyExportable O>
Result<SharedMemoryKey<O, Listed>, Refused<O>> export_key(DEVSHARE_CONSUMED_PARAMETER O&& owner) noexcept {
  return detail::export_key_as<Listed, O>(std::move(owner));
}
// The same for whoever holds the ticket: the runtime asks nobody for its pid.
template <detail::KeyExportable O>
Result<SharedMemoryKey<O, Unrestricted>, Refused<O>> export_key_unrestricted(
    DEVSHARE_CONSUMED_PARAMETER O&& owner) noexcept {
  return detail::export_key_as<Unrestricted, O>(std::move(owner));
}

template <class O>
  requires std::is_lvalue_reference_v<O>
void export_key(O&&) = delete;  // write export_key(std::move(memory)): the key owns what it exports
template <class O>
  requires(!std::is_reference_v<O> && !is_key_exportable<O>)
void export_key(O&&) = delete;  // a key needs memory of aclrtMalloc that this process owns (R10, R12): is_key_exportable
template <class O>
  requires std::is_lvalue_reference_v<O>
void export_key_unrestricted(O&&) = delete;  // write export_key_unrestricted(std::move(memory)): the key owns it
template <class O>
  requires(!std::is_reference_v<O> && !is_key_exportable<O>)
void export_key_unrestricted(O&&) = delete;  // a key needs memory of aclrtMalloc that this process owns (R10, R12)

namespace detail {

template <class K>
concept HandleKind = std::same_as<K, v1> || std::same_as<K, v2> || std::same_as<K, fabric>;

template <class O>
concept HandleOwner = std::same_as<O, PhysicalHandle> || std::same_as<O, Mapping>;

template <class K, class Admission, class Owner>
Result<ExportToken<K, Owner, Admission>, Refused<Owner>> export_handle_as(Owner&& owner) noexcept {
  auto opened = open_handle_export(owner, K::mechanism, std::is_same_v<Admission, Unrestricted>);
  if (!opened) [[unlikely]] return Refused<Owner>(opened.error(), std::move(owner));
  const Session session = owner.owned().session();
  return ExportToken<K, Owner, Admission>(std::move(owner), session, *opened);
}

}  // namespace detail

// Exports physical memory, of a handle or of a mapping of one handle, to processes that admit() will name. K says how:
//   v1      importers of every release that has handles
//   v2      the same by the newer calls
//   fabric  importers on other servers of a super-pod too
// Errors: already_exported_as, not_exportable (several handles), no_backing, unsupported_by_runtime (the product or the
// runtime has no such kind), closed, forked, runtime_gone, refused.
// ACL: aclrtMemExportToShareableHandle or its V2.
template <detail::HandleKind K, detail::HandleOwner O>
Result<ExportToken<K, O, Listed>, Refused<O>> export_handle(DEVSHARE_CONSUMED_PARAMETER O&& owner) noexcept {
  return detail::export_handle_as<K, Listed, O>(std::move(owner));
}
// The same for whoever holds the ticket: the runtime asks nobody for its pid.
template <detail::HandleKind K, detail::HandleOwner O>
Result<ExportToken<K, O, Unrestricted>, Refused<O>> export_handle_unrestricted(
    DEVSHARE_CONSUMED_PARAMETER O&& owner) noexcept {
  return detail::export_handle_as<K, Unrestricted, O>(std::move(owner));
}

template <class K, class O>
  requires std::is_lvalue_reference_v<O>
void export_handle(O&&) = delete;  // write export_handle<v2>(std::move(mapping)): the token owns what it exports
template <class K, class O>
  requires(!std::is_reference_v<O> && !detail::HandleOwner<O>)
void export_handle(O&&) = delete;  // a token needs physical memory that this process allocated (R26): PhysicalHandle, Mapping
template <class K, class O>
  requires(detail::HandleOwner<O> && !detail::HandleKind<K>)
void export_handle(O&&) = delete;  // a handle is shared as v1, v2 or fabric; a key needs memory of aclrtMalloc: export_key
template <auto K, class O>
void export_handle(O&&) = delete;  // the kind of share is a type, v1, v2 or fabric: no device id and no number
template <class K, class O>
  requires std::is_lvalue_reference_v<O>
void export_handle_unrestricted(O&&) = delete;  // write export_handle_unrestricted<v2>(std::move(mapping))
template <class K, class O>
  requires(!std::is_reference_v<O> && !detail::HandleOwner<O>)
void export_handle_unrestricted(O&&) = delete;  // a token needs physical memory that this process allocated (R26)
template <class K, class O>
  requires(detail::HandleOwner<O> && !detail::HandleKind<K>)
void export_handle_unrestricted(O&&) = delete;  // a handle is shared as v1, v2 or fabric
template <auto K, class O>
void export_handle_unrestricted(O&&) = delete;  // the kind of share is a type, v1, v2 or fabric

}  // namespace devshare
