// SPDX-License-Identifier: Apache-2.0
// SharedEvent: an event that other processes open. ImportedEvent: one that another process made. Both record and wait;
// neither is asked whether it has happened, nor measures time (R49).
#pragma once

#include <devshare/stream.hpp>
#include <devshare/sync_ticket.hpp>

namespace devshare {

namespace detail {

struct SharedEventValue {
  acl::aclrtEvent native = nullptr;
  std::int32_t device = -1;
};

struct SharedEventPolicy {
  using Value = SharedEventValue;
  static void abandon(const Value&) noexcept {}
  static const void* identity(const Value& value) noexcept { return value.native; }
  DEVSHARE_API static Result<void> close(const Session& session, const Value& value) noexcept;
};

}  // namespace detail

// What both do. Any thread. Moved from, the calls return `closed`.
//
// Recording begins a new moment: who waits already keeps waiting for the one that was recorded then. An event that was
// never recorded holds nobody up. Processes that record one event at the same time have one order of moments, and a later
// one that has happened stands for those before it.
class DEVSHARE_CONSUMABLE AnySharedEvent {
 public:
  // The moment when the stream has done all that is in it by now. Errors: wrong_device, invalid_argument.
  // ACL: aclrtRecordEvent.
  DEVSHARE_READS DEVSHARE_API Result<void> record(const StreamRef& stream) const noexcept;

  // What the stream gets from now on waits until the event, as it is recorded now by whatever process, has happened.
  // Errors: wrong_device, invalid_argument. ACL: aclrtStreamWaitEvent.
  DEVSHARE_READS DEVSHARE_API Result<void> hold_up(const StreamRef& stream) const noexcept;

  // Waits for it. That the work before it went well is for the recording stream's synchronize() to say. A process that
  // ends before its recording has happened leaves others waiting: give a limit.
  // ACL: aclrtSynchronizeEvent, aclrtSynchronizeEventWithTimeout. Errors: timed_out, runtime_gone.
  DEVSHARE_READS DEVSHARE_API Result<void> synchronize() const noexcept;
  DEVSHARE_READS DEVSHARE_API Result<void> synchronize(Deadline deadline) const noexcept;

  void happened() const = delete;  // an event for other processes is not asked (R49): synchronize(Deadline::now()) waits for nothing

  // Only of an object that was not moved from.
  DEVSHARE_READS Device device() const noexcept { return detail::device_of(owned_.session(), owned_.value().device); }
  DEVSHARE_READS acl::aclrtEvent native_handle() const noexcept { return owned_.value().native; }

 protected:
  AnySharedEvent(const detail::Session& session, const detail::SharedEventValue& value) noexcept
      : owned_(session, value) {}

  detail::Owned<detail::SharedEventPolicy> owned_;
};

class DEVSHARE_CONSUMABLE [[nodiscard("the event ends when this object ends")]] SharedEvent : public AnySharedEvent {
 public:
  // Errors: resource_limit, unsupported_by_runtime (the product has none), fd_limit, no_device_context, runtime_gone.
  // ACL: aclrtCreateEventExWithFlag.
  DEVSHARE_API static Result<SharedEvent> create(const Device& device) noexcept;

  // What other processes open it by. Nobody is asked: whoever holds the ticket may. ACL: aclrtIpcGetEventHandle.
  DEVSHARE_READS DEVSHARE_API Result<EventTicket> ticket() const noexcept;

  // Every process that has the event ends it for itself. Refused, it comes back inside the error.
  // Errors: closed, forked, runtime_gone, refused. ACL: aclrtDestroyEvent.
  DEVSHARE_API DEVSHARE_CONSUMES Result<void, Refused<SharedEvent>> close() && noexcept;
  void close() & = delete;       // write std::move(event).close(): it ends the event
  void close() const& = delete;  // const, or still inside a Result: make a named object of it first, then close that

 private:
  using AnySharedEvent::AnySharedEvent;
};

class DEVSHARE_CONSUMABLE [[nodiscard("the event ends here when this object ends")]] ImportedEvent : public AnySharedEvent {
 public:
  // `device` is the importer's own; peer access to the creator's is enabled where they differ.
  // Errors: self_import, different_host, stale_token, exporter_gone, timed_out, peer_access_impossible, resource_limit,
  // unsupported_by_runtime, runtime_gone. ACL: aclrtIpcOpenEventHandle.
  DEVSHARE_API static Result<ImportedEvent> open(const ReceivedEventTicket& ticket, const Device& device) noexcept;
  static Result<ImportedEvent> open(const EventTicket&, const Device&) = delete;  // a process cannot import what it exported

  // Every process that has the event ends it for itself. Refused, it comes back inside the error.
  // Errors: closed, forked, runtime_gone, refused. ACL: aclrtDestroyEvent.
  DEVSHARE_API DEVSHARE_CONSUMES Result<void, Refused<ImportedEvent>> close() && noexcept;
  void close() & = delete;       // write std::move(event).close(): it ends the event
  void close() const& = delete;  // const, or still inside a Result: make a named object of it first, then close that

 private:
  using AnySharedEvent::AnySharedEvent;
};

}  // namespace devshare
