// SPDX-License-Identifier: Apache-2.0
// Event: a moment in a stream, for other streams of its device and for the host to wait for.
#pragma once

#include <devshare/stream.hpp>

namespace devshare {

namespace detail {

struct EventValue {
  acl::aclrtEvent native = nullptr;
  std::int32_t device = -1;
};

struct EventPolicy {
  using Value = EventValue;
  static void abandon(const Value&) noexcept {}
  static const void* identity(const Value& value) noexcept { return value.native; }
  DEVSHARE_API static Result<void> close(const Session& session, const Value& value) noexcept;
};

}  // namespace detail

// An event that this object owns. Movable, not copyable; any thread. Moved from, its calls return `closed`.
//
// Recording begins a new moment: who waits already keeps waiting for the one that was recorded then. An event that was
// never recorded holds nobody up. Ending an event does not wait, and lets go of nobody who waits.
class DEVSHARE_CONSUMABLE [[nodiscard("the event ends when this object ends")]] Event {
 public:
  // Errors: resource_limit, unsupported_by_runtime, no_device_context, runtime_gone. ACL: aclrtCreateEvent.
  DEVSHARE_API static Result<Event> create(const Device& device) noexcept;

  // The moment when the stream has done all that is in it by now. Errors: wrong_device, invalid_argument (the stream has
  // ended). ACL: aclrtRecordEvent.
  DEVSHARE_READS DEVSHARE_API Result<void> record(const StreamRef& stream) const noexcept;

  // What the stream gets from now on waits until the event, as it is recorded now, has happened. Does not wait itself.
  // Errors: wrong_device, invalid_argument. ACL: aclrtStreamWaitEvent.
  DEVSHARE_READS DEVSHARE_API Result<void> hold_up(const StreamRef& stream) const noexcept;

  // Waits for it. That the work before it went well is for the stream's synchronize() to say.
  // ACL: aclrtSynchronizeEvent, aclrtSynchronizeEventWithTimeout. Errors: timed_out, runtime_gone.
  DEVSHARE_READS DEVSHARE_API Result<void> synchronize() const noexcept;
  DEVSHARE_READS DEVSHARE_API Result<void> synchronize(Deadline deadline) const noexcept;

  // Whether it was recorded and has happened. ACL: aclrtQueryEventStatus.
  DEVSHARE_READS DEVSHARE_API Result<bool> happened() const noexcept;

  // Only of an object that was not moved from.
  DEVSHARE_READS Device device() const noexcept { return detail::device_of(owned_.session(), owned_.value().device); }
  DEVSHARE_READS acl::aclrtEvent native_handle() const noexcept { return owned_.value().native; }

  // Refused, the event comes back inside the error. Errors: closed, forked, runtime_gone, refused.
  // ACL: aclrtDestroyEvent.
  DEVSHARE_API DEVSHARE_CONSUMES Result<void, Refused<Event>> close() && noexcept;
  void close() & = delete;       // write std::move(event).close(): it ends the event
  void close() const& = delete;  // const, or still inside a Result: make a named object of it first, then close that

 private:
  Event(const detail::Session& session, const detail::EventValue& value) noexcept : owned_(session, value) {}

  detail::Owned<detail::EventPolicy> owned_;

  friend DEVSHARE_API Result<float> milliseconds_between(const Event& start, const Event& end) noexcept;
};

// The time from one event to another; both must have happened. Errors: not_ready, closed. ACL: aclrtEventElapsedTime.
DEVSHARE_API Result<float> milliseconds_between(const Event& start, const Event& end) noexcept;

}  // namespace devshare
