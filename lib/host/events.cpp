// SPDX-License-Identifier: Apache-2.0
// Events inside a process: recorded in one stream, waited for in others or by the host.
#include "events.hpp"

#include "calls.hpp"
#include "export_state.hpp"
#include "failure.hpp"
#include "profile.hpp"
#include "shared_events.hpp"
#include "stream_state.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

namespace devshare::host {
namespace {

namespace code = acl::code;

using Lock = std::unique_lock<std::mutex>;
using Clock = std::chrono::steady_clock;
using Moment = std::optional<Clock::time_point>;  // none: without a limit

constexpr std::uint32_t known_flags = acl::event_flag::sync | acl::event_flag::capture_stream_progress |
                                      acl::event_flag::time_line | acl::event_flag::device_use_only |
                                      acl::event_flag::external;
constexpr std::uint32_t usual_flags = acl::event_flag::sync | acl::event_flag::time_line;

// Whoever waited for a recording that is over goes on.
void let_go(StreamState& all, Recording& recording) {
  for (Queue* const queue : std::exchange(recording.parked, {})) resume(all, *queue);
  all.progress.notify_all();
}

class RecordTask final : public Task {
 public:
  explicit RecordTask(std::shared_ptr<Recording> recording)
      : Task(acl::Entry::aclrtRecordEvent, Kind::control), recording_(std::move(recording)) {}

  bool pass(StreamState& all, Queue&, TaskFailure*) override {
    recording_->happened = true;
    recording_->at = Clock::now();
    let_go(all, *recording_);
    return true;
  }
  void dropped(StreamState& all, Queue&) override {
    recording_->dropped = true;
    let_go(all, *recording_);
  }

 private:
  std::shared_ptr<Recording> recording_;
};

class WaitTask final : public Task {
 public:
  explicit WaitTask(std::shared_ptr<Recording> recording)
      : Task(acl::Entry::aclrtStreamWaitEvent, Kind::control), recording_(std::move(recording)) {}

  bool pass(StreamState&, Queue& queue, TaskFailure*) override {
    if (recording_->over()) return true;
    recording_->parked.push_back(&queue);
    return false;
  }
  void dropped(StreamState&, Queue& queue) override { std::erase(recording_->parked, &queue); }

 private:
  std::shared_ptr<Recording> recording_;
};

// Forgets a recording when its turn comes, unless the event has been recorded anew by then.
class ResetTask final : public Task {
 public:
  ResetTask(acl::aclrtEvent event, std::shared_ptr<Recording> recording)
      : Task(acl::Entry::aclrtResetEvent, Kind::control), event_(event), recording_(std::move(recording)) {}

  bool pass(StreamState& all, Queue&, TaskFailure*) override {
    Event* const event = all.events.find(event_);
    if (event != nullptr && event->recording == recording_) event->recording.reset();
    return true;
  }

 private:
  acl::aclrtEvent event_;
  std::shared_ptr<Recording> recording_;
};

acl::aclError refuse_unknown(acl::aclrtEvent event) {
  if (event == nullptr) return refuse(code::invalid_param, Reason::bad_argument, "event is null");
  return refuse(code::rt_invalid_handle, Reason::unknown_event, "there is no such event: destroyed, or never created");
}

acl::aclError refuse_device(DeviceNumber current, DeviceNumber own) {
  return refuse(code::rt_stream_context,
                {.reason = Reason::other_device, .device = current.user, .peer_device = own.user},
                fmt::format("the event belongs to device {} and the stream to device {}: events do not cross devices",
                            own.user, current.user));
}

acl::aclError make_shared_moment(std::shared_ptr<SharedMoment>* out) {
  if (!profile().supports(acl::Entry::aclrtIpcGetEventHandle)) {
    return refuse(code::rt_feature_not_support, Reason::unsupported,
                  fmt::format("{} has no events between processes", product_name(profile().product)));
  }
  return SharedMoment::create(out);
}

acl::aclError create(acl::aclrtEvent* event, std::uint32_t flags) {
  if (event == nullptr) return refuse(code::invalid_param, Reason::bad_argument, "event is null");
  const bool shared = flags == acl::event_flag::ipc;
  if ((flags & acl::event_flag::ipc) != 0 && !shared) {
    return refuse(code::rt_param_invalid, Reason::shared_event,
                  fmt::format("flag {:#x} has ACL_EVENT_IPC and others: it goes alone (R49)", flags));
  }
  if (!shared && (flags & ~known_flags) != 0) {
    return refuse(code::rt_param_invalid, Reason::bad_argument, fmt::format("flag {:#x} has unknown bits", flags));
  }
  ContextNumber context;
  if (const acl::aclError refused = current_context(&context)) return refused;
  std::shared_ptr<SharedMoment> moment;
  if (shared) {
    if (const acl::aclError refused = make_shared_moment(&moment)) return refused;
  }
  StreamState& all = stream_state.get();
  {
    const std::lock_guard lock(all.mutex);
    if (Event* const made = all.events.make(most_events)) {
      made->flags = flags;
      made->device = context.device();
      made->moment = std::move(moment);
      *event = Numbered<Event>::handle_of(*made);
      return code::success;
    }
  }
  return refuse(code::rt_no_event_resource, {.reason = Reason::resource_limit, .available = most_events},
                fmt::format("this process has {} events, and that is all it can have: destroy some", most_events));
}

// What happens with an event in a stream: finds both, checks that they are of one device, and calls `act` with them
// under the lock.
template <class Act>
acl::aclError in_stream(acl::aclrtEvent handle, acl::aclrtStream stream, Act act) {
  if (handle == nullptr) return refuse_unknown(handle);
  StreamPlace place;
  if (const acl::aclError refused = place_of(stream, &place)) return refused;
  OpenStream open(place);
  if (open.refused() != 0) return open.refused();
  Event* const event = open.all().events.find(handle);
  if (event == nullptr) {
    open.lock().unlock();
    return refuse_unknown(handle);
  }
  const DeviceNumber own = event->device;
  if (own.physical != place.context.device().physical) {
    open.lock().unlock();
    return refuse_device(place.context.device(), own);
  }
  act(open, *event);
  return code::success;
}

acl::aclError synchronize(acl::aclrtEvent handle, Moment until) {
  ContextNumber context;
  if (handle == nullptr) return refuse_unknown(handle);
  if (const acl::aclError refused = current_context(&context)) return refused;
  StreamState& all = stream_state.get();
  Lock lock(all.mutex);
  const Event* const event = all.events.find(handle);
  if (event == nullptr) {
    lock.unlock();
    return refuse_unknown(handle);
  }
  const std::shared_ptr<SharedMoment> moment = event->moment;
  if (moment != nullptr && wait_on_host(all, lock, *moment, until)) return code::success;
  const std::shared_ptr<Recording> recording = event->recording;
  while (recording != nullptr && !recording->over() && !all.closed) {
    if (!until) {
      all.progress.wait(lock);
    } else if (all.progress.wait_until(lock, *until) == std::cv_status::timeout) {
      break;
    }
  }
  const bool over = moment == nullptr && (recording == nullptr || recording->over());
  const bool finalized = all.closed;
  lock.unlock();
  if (over) return code::success;
  if (finalized) {
    return refuse(code::uninitialize, Reason::not_initialised, "aclFinalize was called while this thread waited");
  }
  return refuse(code::rt_event_sync_timeout, Reason::timed_out, "the stream has not come to the event yet");
}

}  // namespace

void events_shut_down() {
  StreamState* const all = stream_state.existing();
  if (all == nullptr) return;
  const std::lock_guard lock(all->mutex);
  all->events.end_all();
}

std::uint64_t events_held() {
  StreamState* const all = stream_state.existing();
  if (all == nullptr) return 0;
  const std::lock_guard lock(all->mutex);
  return all->events.live();
}

namespace calls {

aclError aclrtCreateEvent(aclrtEvent* event) { return create(event, usual_flags); }
aclError aclrtCreateEventWithFlag(aclrtEvent* event, std::uint32_t flag) { return create(event, flag); }
aclError aclrtCreateEventExWithFlag(aclrtEvent* event, std::uint32_t flag) { return create(event, flag); }

// What waits for its recording goes on waiting for that.
aclError aclrtDestroyEvent(aclrtEvent event) {
  ContextNumber context;
  if (event == nullptr) return refuse_unknown(event);
  if (const aclError refused = current_context(&context)) return refused;
  ExportState& exports = export_state.get();
  const std::scoped_lock exports_lock(exports.mutex);
  StreamState& all = stream_state.get();
  {
    const std::lock_guard lock(all.mutex);
    if (Event* const found = all.events.find(event)) {
      if (found->exported && exports.session != nullptr) exports.session->events().creator_left(found->name);
      all.events.end(*found);
      return code::success;
    }
  }
  return refuse_unknown(event);
}

aclError aclrtRecordEvent(aclrtEvent event, aclrtStream stream) {
  return in_stream(event, stream, [](OpenStream& open, Event& found) {
    if (found.moment != nullptr) return open.add(record_shared(found.moment));
    found.recording = std::make_shared<Recording>();
    open.add(std::make_unique<RecordTask>(found.recording));
  });
}

aclError aclrtResetEvent(aclrtEvent event, aclrtStream stream) {
  bool shared = false;
  const aclError refused = in_stream(event, stream, [&shared](OpenStream& open, Event& found) {
    shared = found.moment != nullptr;
    if (!shared) open.add(std::make_unique<ResetTask>(Numbered<Event>::handle_of(found), found.recording));
  });
  return shared ? refuse_shared("reset") : refused;
}

// An event that was not recorded holds nobody up.
aclError aclrtStreamWaitEvent(aclrtStream stream, aclrtEvent event) {
  return in_stream(event, stream, [](OpenStream& open, Event& found) {
    if (found.moment != nullptr) {
      if (std::unique_ptr<Task> waits = wait_for_shared(found.moment)) open.add(std::move(waits));
      return;
    }
    if (found.recording != nullptr) open.add(std::make_unique<WaitTask>(found.recording));
  });
}

aclError aclrtQueryEventStatus(aclrtEvent event, aclrtEventRecordedStatus* status) {
  if (status == nullptr) return refuse(code::invalid_param, Reason::bad_argument, "status is null");
  if (event == nullptr) return refuse_unknown(event);
  ContextNumber context;
  if (const aclError refused = current_context(&context)) return refused;
  StreamState& all = stream_state.get();
  bool shared = false;
  {
    const std::lock_guard lock(all.mutex);
    const Event* const found = all.events.find(event);
    shared = found != nullptr && found->moment != nullptr;
    if (found != nullptr && !shared) {
      const bool happened = found->recording != nullptr && found->recording->happened;
      *status = happened ? event_status::complete : event_status::not_ready;
      return code::success;
    }
  }
  return shared ? refuse_shared("query") : refuse_unknown(event);
}

aclError aclrtSynchronizeEvent(aclrtEvent event) { return synchronize(event, {}); }

aclError aclrtSynchronizeEventWithTimeout(aclrtEvent event, std::int32_t timeout) {
  if (timeout < -1) {
    return refuse(code::rt_param_invalid, Reason::bad_argument,
                  fmt::format("timeout is {}: -1 waits without a limit, 0 not at all", timeout));
  }
  if (timeout == -1) return synchronize(event, {});
  return synchronize(event, Clock::now() + std::chrono::milliseconds(timeout));
}

aclError aclrtEventElapsedTime(float* ms, aclrtEvent startEvent, aclrtEvent endEvent) {
  if (ms == nullptr) return refuse(code::invalid_param, Reason::bad_argument, "ms is null");
  if (startEvent == nullptr || endEvent == nullptr) return refuse_unknown(nullptr);
  ContextNumber context;
  if (const aclError refused = current_context(&context)) return refused;
  StreamState& all = stream_state.get();
  bool known = false;
  bool shared = false;
  bool timed = false;
  {
    const std::lock_guard lock(all.mutex);
    const Event* const start = all.events.find(startEvent);
    const Event* const end = all.events.find(endEvent);
    known = start != nullptr && end != nullptr;
    shared = known && (start->moment != nullptr || end->moment != nullptr);
    timed = known && (start->flags & end->flags & event_flag::time_line) != 0;
    const auto happened = [](const Event& event) { return event.recording != nullptr && event.recording->happened; };
    if (timed && happened(*start) && happened(*end)) {
      *ms = std::chrono::duration<float, std::milli>(end->recording->at - start->recording->at).count();
      return code::success;
    }
  }
  if (!known) return refuse_unknown(startEvent);
  if (shared) return refuse_shared("measurement of time");
  if (!timed) {
    return refuse(code::rt_param_invalid, Reason::bad_argument,
                  "an event without ACL_EVENT_TIME_LINE keeps no time: create both with it");
  }
  return refuse(code::rt_param_invalid, Reason::not_happened,
                "both events must be recorded and have happened: synchronise the later one first");
}

}  // namespace calls
}  // namespace devshare::host
