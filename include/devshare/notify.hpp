// SPDX-License-Identifier: Apache-2.0
// SharedNotify: a bit that streams of this process wait for and other processes set. ImportedNotify: such a bit of
// another process, to be set and nothing else.
#pragma once

#include <devshare/process.hpp>
#include <devshare/stream.hpp>
#include <devshare/sync_ticket.hpp>

#include <array>
#include <cstddef>
#include <type_traits>

namespace devshare {

namespace detail {

struct NotifyValue {
  acl::aclrtNotify native = nullptr;
  std::int32_t device = -1;
  std::array<char, acl::ipc_key_size> key{};  // of a SharedNotify
};

struct NotifyPolicy {
  using Value = NotifyValue;
  static void abandon(const Value&) noexcept {}
  static const void* identity(const Value& value) noexcept { return value.native; }
  DEVSHARE_API static Result<void> close(const Session& session, const Value& value) noexcept;
};

}  // namespace detail

// A notify that this process created: it alone waits on it (R46), and who it admitted records it. Movable, not copyable;
// any thread. Moved from, its calls return `closed`. Recorded twice before anybody waited it counts once.
class DEVSHARE_CONSUMABLE [[nodiscard("the notify ends when this object ends")]] SharedNotify {
 public:
  // Errors: resource_limit, unsupported_by_runtime, no_device_context, runtime_gone, fd_limit.
  // ACL: aclrtCreateNotify, aclrtNotifyGetExportKey. A notify has one export: it is made here.
  DEVSHARE_API static Result<SharedNotify> create(const Device& device) noexcept;

  // Lets another process import it (R13 to R15). ACL: aclrtNotifySetImportPid.
  DEVSHARE_READS DEVSHARE_API Result<NotifyTicket> admit(BarePid importer) const noexcept;
  template <class T>
    requires(!std::is_same_v<T, BarePid>)
  Result<NotifyTicket> admit(T) const = delete;  // a bare pid, from the importer's Runtime::bare_pid()

  // The stream, which is of the notify's device, goes on when the notify was recorded, and takes the recording back.
  // Errors: invalid_argument or wrong_device (another device's stream). ACL: aclrtWaitAndResetNotify.
  DEVSHARE_READS Result<void> hold_up(const StreamRef& stream) const noexcept { return hold_up_within(stream, 0); }
  // The same, for so many seconds at most from when its turn comes; 0 is without a limit. Later, the stream goes on and
  // its synchronize() returns timed_out.
  DEVSHARE_READS DEVSHARE_API Result<void> hold_up_within(const StreamRef& stream, std::uint32_t seconds) const noexcept;

  // Recorded when the stream has done all that is in it by now. ACL: aclrtRecordNotify.
  DEVSHARE_READS DEVSHARE_API Result<void> record(const StreamRef& stream) const noexcept;

  // Takes a recording back that nobody has waited for. Not in a stream. ACL: aclrtNotifyBatchReset.
  DEVSHARE_READS DEVSHARE_API Result<void> reset() const noexcept;

  // Only of an object that was not moved from.
  DEVSHARE_READS Device device() const noexcept { return detail::device_of(owned_.session(), owned_.value().device); }
  DEVSHARE_READS acl::aclrtNotify native_handle() const noexcept { return owned_.value().native; }

  // Every process that has the notify ends it for itself (R48). Refused, it comes back inside the error.
  // Errors: closed, forked, runtime_gone, refused. ACL: aclrtDestroyNotify.
  DEVSHARE_API DEVSHARE_CONSUMES Result<void, Refused<SharedNotify>> close() && noexcept;
  void close() & = delete;       // write std::move(notify).close(): it ends the notify
  void close() const& = delete;  // const, or still inside a Result: make a named object of it first, then close that

 private:
  SharedNotify(const detail::Session& session, const detail::NotifyValue& value) noexcept : owned_(session, value) {}

  detail::Owned<detail::NotifyPolicy> owned_;
};

// Another process's notify. Movable, not copyable; any thread.
class DEVSHARE_CONSUMABLE [[nodiscard("the import ends when this object ends")]] ImportedNotify {
 public:
  // `device` is the importer's own; peer access to the creator's is enabled where they differ.
  // Errors: self_import, different_host, not_authorised, stale_token, exporter_gone, timed_out, peer_access_impossible,
  // resource_limit, unsupported_by_runtime, runtime_gone. ACL: aclrtNotifyImportByKey.
  DEVSHARE_API static Result<ImportedNotify> open(const ReceivedNotifyTicket& ticket, const Device& device) noexcept;
  static Result<ImportedNotify> open(const NotifyTicket&, const Device&) = delete;  // a process cannot import what it exported

  // Recorded when the stream has done all that is in it by now. That it could not be is returned by the stream's
  // synchronize(): exporter_gone when the creator has ended. ACL: aclrtRecordNotify.
  DEVSHARE_READS DEVSHARE_API Result<void> record(const StreamRef& stream) const noexcept;

  void hold_up(const StreamRef&) const = delete;  // only the process that created a notify waits on it (R46)
  void reset() const = delete;                    // only the process that created a notify resets it (R46)

  // Only of an object that was not moved from.
  DEVSHARE_READS Device device() const noexcept { return detail::device_of(owned_.session(), owned_.value().device); }
  DEVSHARE_READS acl::aclrtNotify native_handle() const noexcept { return owned_.value().native; }

  // As above.
  DEVSHARE_API DEVSHARE_CONSUMES Result<void, Refused<ImportedNotify>> close() && noexcept;
  void close() & = delete;       // write std::move(notify).close(): it ends the import
  void close() const& = delete;  // const, or still inside a Result: make a named object of it first, then close that

 private:
  ImportedNotify(const detail::Session& session, const detail::NotifyValue& value) noexcept : owned_(session, value) {}

  detail::Owned<detail::NotifyPolicy> owned_;
};

}  // namespace devshare
