// SPDX-License-Identifier: Apache-2.0
#include <devshare/event.hpp>

#include "device_call.hpp"

namespace devshare {

using acl::Table;
using detail::call_on;

// A call on an event's own device, or on that of the stream it meets: the runtime refuses two that differ.
template <auto entry, class... Arguments>
static Result<void> call_with(const detail::Owned<detail::EventPolicy>& event, std::int32_t device, Operation operation,
                              Arguments... arguments) noexcept {
  if (!event.holds()) return Error(Errc::closed, operation);
  return call_on<entry>(event.session(), device, operation, arguments...);
}

Result<Event> Event::create(const Device& device) noexcept {
  acl::aclrtEvent native = nullptr;
  DEVSHARE_CHECK(
      call_on<&Table::aclrtCreateEvent>(device.session(), device.number(), Operation::create_event, &native));
  return Event(device.session(), {native, device.number()});
}

Result<void> Event::record(const StreamRef& stream) const noexcept {
  return call_with<&Table::aclrtRecordEvent>(owned_, stream.device().number(), Operation::record_event,
                                             owned_.value().native, stream.native_handle());
}

Result<void> Event::hold_up(const StreamRef& stream) const noexcept {
  return call_with<&Table::aclrtStreamWaitEvent>(owned_, stream.device().number(), Operation::wait_event,
                                                 stream.native_handle(), owned_.value().native);
}

Result<void> Event::synchronize() const noexcept {
  return call_with<&Table::aclrtSynchronizeEvent>(owned_, owned_.value().device, Operation::synchronize,
                                                  owned_.value().native);
}

Result<void> Event::synchronize(Deadline deadline) const noexcept {
  return call_with<&Table::aclrtSynchronizeEventWithTimeout>(owned_, owned_.value().device, Operation::synchronize,
                                                             owned_.value().native, detail::timeout_until(deadline));
}

Result<bool> Event::happened() const noexcept {
  acl::aclrtEventRecordedStatus status = acl::event_status::not_ready;
  DEVSHARE_CHECK(call_with<&Table::aclrtQueryEventStatus>(owned_, owned_.value().device, Operation::query_event,
                                                          owned_.value().native, &status));
  return status == acl::event_status::complete;
}

Result<void, Refused<Event>> Event::close() && noexcept {
  return detail::close_or_give_back(*this, owned_, Operation::end_event);
}

Result<float> milliseconds_between(const Event& start, const Event& end) noexcept {
  float milliseconds = 0;
  if (!start.owned_.holds()) return Error(Errc::closed, Operation::measure_events);
  DEVSHARE_CHECK(call_with<&Table::aclrtEventElapsedTime>(end.owned_, end.owned_.value().device,
                                                          Operation::measure_events, &milliseconds,
                                                          start.owned_.value().native, end.owned_.value().native));
  return milliseconds;
}

Result<void> detail::EventPolicy::close(const Session& session, const Value& value) noexcept {
  return call_on<&Table::aclrtDestroyEvent>(session, value.device, Operation::end_event, value.native);
}

}  // namespace devshare
