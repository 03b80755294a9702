// SPDX-License-Identifier: Apache-2.0
// Making and ending streams, and waiting for them.
#include "streams.hpp"

#include "calls.hpp"
#include "device.hpp"
#include "failure.hpp"
#include "profile.hpp"
#include "stream_state.hpp"
#include "stream_workers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

namespace devshare::host {
namespace {

namespace code = acl::code;

using Lock = std::unique_lock<std::mutex>;
using Moment = std::optional<std::chrono::steady_clock::time_point>;  // none: without a limit

constexpr std::uint32_t known_flags = acl::stream_flag::fast_launch | acl::stream_flag::fast_sync |
                                      acl::stream_flag::persistent | acl::stream_flag::huge |
                                      acl::stream_flag::cpu_schedule | acl::stream_flag::device_use_only;

// What a process may have at once. The card's number is of a device and all its processes.
std::size_t most_streams() {
  const Product product = profile().product;
  return product == Product::p310 || product == Product::training ? 1024 : 2048;
}

acl::aclError create(acl::aclrtStream* stream, std::uint32_t priority, std::uint32_t flag) {
  if (stream == nullptr) return refuse(code::invalid_param, Reason::bad_argument, "stream is null");
  if (priority > acl::lowest_stream_priority) {
    return refuse(code::rt_param_invalid, Reason::bad_argument,
                  fmt::format("priority is {}: 0, the highest, to 7 exist", priority));
  }
  if ((flag & ~known_flags) != 0) {
    return refuse(code::rt_param_invalid, Reason::bad_argument, fmt::format("flag {:#x} has unknown bits", flag));
  }
  StreamPlace place;
  if (const acl::aclError refused = place_of(nullptr, &place)) return refused;
  StreamState& all = stream_state.get();
  {
    const std::lock_guard lock(all.mutex);
    const std::size_t most = most_streams() + all.defaults.size();  // which do not count
    if (const Queue* const made = take_queue(all, place.context, priority, /*is_default=*/false, most)) {
      *stream = Numbered<Queue>::handle_of(*made);
      return code::success;
    }
  }
  return refuse(code::rt_no_stream_resource, {.reason = Reason::resource_limit, .available = most_streams()},
                fmt::format("this process has {} streams, and that is all it can have: destroy some", most_streams()));
}

// Waits until `condition` holds, aclFinalize has begun, or it is too late; says whether it holds.
// `completed` is how far the stream must be before that can be.
template <class Condition>
bool wait_for(StreamState& all, Lock& lock, Queue& queue, std::uint64_t completed, Moment until, Condition condition) {
  ++queue.waiters;
  bool holds = condition();
  while (!holds && !all.closed) {
    queue.wake_at = std::min(queue.wake_at, completed);
    if (!until) {
      all.progress.wait(lock);
    } else if (all.progress.wait_until(lock, *until) == std::cv_status::timeout) {
      holds = condition();
      break;
    }
    holds = condition();
  }
  leave_queue(all, queue);
  return holds;
}

bool wait_for_tasks(StreamState& all, Lock& lock, Queue& queue, Moment until) {
  const std::uint64_t last = queue.enqueued;
  return wait_for(all, lock, queue, last, until, [&] { return queue.completed >= last; });
}

std::unique_ptr<TaskFailure> take_failure(StreamState& all, Queue& queue) {
  if (queue.failure == nullptr) return nullptr;
  if (profile().task_errors_stay) return std::make_unique<TaskFailure>(*queue.failure);
  --all.failures;
  return std::move(queue.failure);
}

acl::aclError refuse_finalized() {
  return refuse(code::uninitialize, Reason::not_initialised, "aclFinalize was called while this thread waited");
}

acl::aclError tell(const TaskFailure& failure) {
  const std::string_view call = failure.call == acl::Entry::none ? "a function" : entry_name(failure.call);
  return refuse(failure.code, failure.cause, fmt::format("a task of {} in the stream failed: {}", call, failure.text));
}

acl::aclError synchronize(acl::aclrtStream stream, Moment until) {
  StreamPlace place;
  if (const acl::aclError refused = place_of(stream, &place)) return refused;
  StreamState& all = stream_state.get();
  Lock lock(all.mutex);
  Queue* const queue = find_queue(all, place);
  if (queue == nullptr) {
    lock.unlock();
    return refuse_stream(place);
  }
  if (!wait_for_tasks(all, lock, *queue, until)) {
    const std::uint64_t left = queue->enqueued - queue->completed;
    const bool finalized = all.closed;
    lock.unlock();
    if (finalized) return refuse_finalized();
    return refuse(code::rt_stream_sync_timeout, {.reason = Reason::timed_out, .needed = left},
                  fmt::format("{} task{} of the stream are not done", left, left == 1 ? "" : "s"));
  }
  const std::unique_ptr<TaskFailure> failure = take_failure(all, *queue);
  lock.unlock();
  return failure != nullptr ? tell(*failure) : code::success;
}

// Ends a stream that takes nothing new. False when aclFinalize, which ends it too, came first.
bool end(StreamState& all, Lock& lock, Queue& queue) {
  const bool rests = wait_for(all, lock, queue, UINT64_MAX, {}, [&] {
    return queue.tasks.empty() && queue.state == Queue::State::idle && queue.waiters == 1;
  });
  if (rests) give_back_queue(all, queue);
  return rests;
}

acl::aclError destroy(acl::aclrtStream stream, bool force) {
  if (stream == nullptr) {
    return refuse(code::invalid_param, Reason::bad_argument,
                  "stream is null: the default stream goes with its context");
  }
  StreamPlace place;
  if (const acl::aclError refused = place_of(stream, &place)) return refused;
  StreamState& all = stream_state.get();
  TaskList dropped;  // ends after the lock
  Lock lock(all.mutex);
  Queue* const queue = find_queue(all, place);
  if (queue == nullptr) {
    lock.unlock();
    return refuse_stream(place);
  }
  queue->ending = true;
  queue->forced = force;
  if (force) dropped = drop_tasks(all, *queue);
  if (end(all, lock, *queue)) return code::success;
  lock.unlock();
  return refuse_finalized();
}

template <class Visit>
void for_each_stream_of(StreamState& all, std::int32_t physical_device, Visit visit) {
  all.queues.for_each([&](Queue& queue) {
    if (queue.context.device().physical == physical_device) visit(queue);
  });
}

}  // namespace

void streams_end_with(ContextNumber context) {
  StreamState* const all = stream_state.existing();
  if (all == nullptr || !context) return;
  Lock lock(all->mutex);
  all->queues.for_each([&](Queue& queue) {
    if (queue.context != context || queue.ending) return;
    queue.ending = true;
    (void)end(*all, lock, queue);
  });
}

void wait_for_streams_of(std::int32_t physical_device) {
  StreamState* const all = stream_state.existing();
  if (all == nullptr) return;
  Lock lock(all->mutex);
  for_each_stream_of(*all, physical_device, [&](Queue& queue) { (void)wait_for_tasks(*all, lock, queue, {}); });
}

bool failed_task_unreported(std::int32_t physical_device) {
  StreamState* const all = stream_state.existing();
  if (all == nullptr) return false;
  const std::lock_guard lock(all->mutex);
  bool failed = false;
  if (all->failures == 0) return false;
  for_each_stream_of(*all, physical_device, [&](const Queue& queue) { failed = failed || queue.failure != nullptr; });
  return failed;
}

acl::aclError refuse_after_failed_task(std::int32_t physical_device) {
  if (!failed_task_unreported(physical_device)) return code::success;
  return refuse(
      code::rt_drv_internal, Reason::earlier_task_failed,
      "a task in a stream of this device failed, and nothing can be imported until a synchronise has said so");
}

void streams_close() {
  StreamState* const all = stream_state.existing();
  if (all == nullptr) return;
  Lock lock(all->mutex);
  all->closing = true;
  while (all->ready_count != 0 || all->running_count != 0) all->progress.wait(lock);
  all->closing = false;
  all->closed = true;
  all->progress.notify_all();
}

void streams_shut_down() {
  StreamState* const all = stream_state.existing();
  if (all == nullptr) return;
  std::vector<TaskList> dropped;
  Lock lock(all->mutex);
  all->queues.for_each([&](Queue& queue) {
    dropped.push_back(drop_tasks(*all, queue));
    give_back_queue(*all, queue);
  });
  join_workers(*all, lock);
  all->closed = false;
  const TaskMemory unneeded = std::move(all->task_memory);
}

std::uint64_t streams_held() {
  StreamState* const all = stream_state.existing();
  if (all == nullptr) return 0;
  const std::lock_guard lock(all->mutex);
  return all->queues.live() - all->defaults.size();
}

namespace calls {

aclError aclrtCreateStream(aclrtStream* stream) { return create(stream, 0, 0); }

aclError aclrtCreateStreamWithConfig(aclrtStream* stream, std::uint32_t priority, std::uint32_t flag) {
  return create(stream, priority, flag);
}

aclError aclrtDestroyStream(aclrtStream stream) { return destroy(stream, false); }
aclError aclrtDestroyStreamForce(aclrtStream stream) { return destroy(stream, true); }

aclError aclrtStreamQuery(aclrtStream stream, aclrtStreamStatus* status) {
  if (status == nullptr) return refuse(code::invalid_param, Reason::bad_argument, "status is null");
  StreamPlace place;
  if (const aclError refused = place_of(stream, &place)) return refused;
  StreamState& all = stream_state.get();
  {
    const std::lock_guard lock(all.mutex);
    if (const Queue* const queue = find_queue(all, place)) {
      *status = queue->completed == queue->enqueued ? stream_status::complete : stream_status::not_ready;
      return code::success;
    }
  }
  return refuse_stream(place);
}

aclError aclrtSynchronizeStream(aclrtStream stream) { return synchronize(stream, {}); }

aclError aclrtSynchronizeStreamWithTimeout(aclrtStream stream, std::int32_t timeout) {
  if (timeout < -1) {
    return refuse(code::rt_param_invalid, Reason::bad_argument,
                  fmt::format("timeout is {}: -1 waits without a limit, 0 not at all", timeout));
  }
  if (timeout == -1) return synchronize(stream, {});
  return synchronize(stream, std::chrono::steady_clock::now() + std::chrono::milliseconds(timeout));
}

// The earliest failure is told; those of other streams wait for the next synchronise.
aclError aclrtSynchronizeDevice() {
  ContextNumber context;
  if (const aclError refused = current_context(&context)) return refused;
  const std::int32_t device = context.device().physical;
  wait_for_streams_of(device);
  StreamState* const all = stream_state.existing();
  if (all == nullptr) return code::success;
  std::unique_ptr<TaskFailure> failure;
  {
    const std::lock_guard lock(all->mutex);
    Queue* first = nullptr;
    for_each_stream_of(*all, device, [&](Queue& queue) {
      if (queue.failure == nullptr) return;
      if (first == nullptr || queue.failure->order < first->failure->order) first = &queue;
    });
    if (first != nullptr) failure = take_failure(*all, *first);
  }
  return failure != nullptr ? tell(*failure) : code::success;
}

}  // namespace calls
}  // namespace devshare::host
