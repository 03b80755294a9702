// SPDX-License-Identifier: Apache-2.0
#include "stream_state.hpp"

#include "device.hpp"
#include "fork.hpp"
#include "stream_workers.hpp"

#include <fmt/format.h>

#include <cstdint>
#include <system_error>
#include <utility>

namespace devshare::host {

PerProcess<StreamState> stream_state;

namespace {

namespace code = acl::code;

bool on_its_device(const Queue& queue, const StreamPlace& place) {
  return queue.context.device().physical == place.context.device().physical;
}

[[gnu::cold]] acl::aclError refuse_closed() {
  return refuse(code::uninitialize, Reason::not_initialised, "aclFinalize has been called");
}

[[gnu::cold]] acl::aclError refuse_without_worker(int error) {
  return refuse(
      code::rt_no_stream_resource, {.reason = Reason::resource_limit, .system_errno = error},
      fmt::format("no thread can be started to work streams off: {}", std::generic_category().message(error)));
}

}  // namespace

acl::aclError place_of(acl::aclrtStream stream, StreamPlace* out) {
  out->stream = stream;
  return current_context(&out->context);
}

Queue* take_queue(StreamState& all, ContextNumber context, std::uint32_t priority, bool is_default, std::size_t most) {
  Queue* const queue = all.queues.make(most);
  if (queue == nullptr) return nullptr;
  queue->priority = priority;
  queue->context = context;
  queue->is_default = is_default;
  queue->ending = false;
  queue->forced = false;
  queue->enqueued = 0;
  queue->completed = 0;
  if (is_default) all.defaults.emplace(context.bits(), queue);
  return queue;
}

void give_back_queue(StreamState& all, Queue& queue) {
  if (queue.failure != nullptr) --all.failures;
  if (queue.is_default) all.defaults.erase(queue.context.bits());
  all.queues.end(queue);
}

Queue* find_queue(StreamState& all, const StreamPlace& place) {
  if (place.stream == nullptr) {
    const auto found = all.defaults.find(place.context.bits());
    Queue* const queue =
        found != all.defaults.end() ? found->second : take_queue(all, place.context, 0, /*is_default=*/true, SIZE_MAX);
    return queue != nullptr && !queue->ending ? queue : nullptr;
  }
  Queue* const queue = all.queues.find(place.stream);
  return queue != nullptr && !queue->ending && on_its_device(*queue, place) ? queue : nullptr;
}

acl::aclError refuse_stream(const StreamPlace& place) {
  StreamState& all = stream_state.get();
  std::unique_lock lock(all.mutex);
  const Queue* const queue = place.stream != nullptr ? all.queues.find(place.stream) : nullptr;
  if (queue == nullptr || queue->ending) {
    lock.unlock();
    return refuse(code::rt_invalid_handle, Reason::unknown_stream,
                  place.stream != nullptr ? "there is no such stream: destroyed, or never created"
                                          : "the context of the default stream is ending");
  }
  const DeviceNumber own = queue->context.device();
  lock.unlock();
  const DeviceNumber current = place.context.device();
  return refuse(code::rt_stream_context,
                {.reason = Reason::other_device, .device = current.user, .peer_device = own.user},
                fmt::format("the stream belongs to device {} and device {} is current: make its device current first",
                            own.user, current.user));
}

OpenStream::OpenStream(const StreamPlace& place) : all_(stream_state.get()), lock_(all_.mutex) {
  if (all_.closed || all_.closing) [[unlikely]] {  // or those who go on enqueuing would keep aclFinalize from its end
    lock_.unlock();
    refused_ = refuse_closed();
    return;
  }
  queue_ = find_queue(all_, place);
  if (queue_ == nullptr) [[unlikely]] {
    lock_.unlock();
    refused_ = refuse_stream(place);
    return;
  }
  if (const int error = first_worker(all_); error != 0) [[unlikely]] {
    lock_.unlock();
    refused_ = refuse_without_worker(error);
  }
}

OpenStream::~OpenStream() {
  if (lock_.owns_lock()) lock_.unlock();
  if (wake_) all_.work.notify_one();
}

void OpenStream::add(std::unique_ptr<Task> task) {
  queue_->tasks.add(std::move(task));
  ++queue_->enqueued;
  if (queue_->state == Queue::State::idle) wake_ = make_ready(all_, *queue_);
}

acl::aclError enqueue(const StreamPlace& place, std::unique_ptr<Task> task) {
  OpenStream stream(place);
  if (stream.refused() != 0) return stream.refused();
  stream.add(std::move(task));
  return code::success;
}

acl::aclError enqueue_and_wait(const StreamPlace& place, std::unique_ptr<Task> task) {
  TaskOutcome outcome;
  task->report_to(&outcome);
  {
    OpenStream stream(place);
    if (stream.refused() != 0) return stream.refused();
    StreamState& all = stream.all();
    Queue& queue = stream.queue();
    stream.add(std::move(task));
    all.work.notify_one();
    ++queue.waiters;
    // aclFinalize, too, ends this.
    while (!outcome.done && !all.closed) all.progress.wait(stream.lock());
    if (!outcome.done) forget_outcome(queue, &outcome);
    leave_queue(all, queue);
  }
  if (!outcome.done) return refuse_closed();
  if (outcome.failure.code == 0) return code::success;
  return refuse(outcome.failure.code, outcome.failure.cause, std::move(outcome.failure.text));
}

void tell_waiters(StreamState& all, Queue& queue) {
  queue.wake_at = UINT64_MAX;  // who has to wait longer says so again
  all.progress.notify_all();
}

void leave_queue(StreamState& all, Queue& queue) {
  --queue.waiters;
  if (queue.ending) all.progress.notify_all();
}

void resume(StreamState& all, Queue& queue) {
  if (all.closed) return;  // what is parked now is dropped
  if (queue.state == Queue::State::parked && make_ready(all, queue)) all.work.notify_one();
}

TaskList drop_tasks(StreamState& all, Queue& queue) {
  if (queue.state == Queue::State::parked) {
    queue.state = Queue::State::idle;
  } else if (queue.state == Queue::State::ready) {
    unmake_ready(all, queue);
  }
  TaskList dropped = std::move(queue.tasks);
  dropped.for_each([&](Task& task) {
    ++queue.completed;
    task.dropped(all, queue);
    if (TaskOutcome* const outcome = task.outcome()) {
      outcome->done = true;
      outcome->failure = {.call = task.call(),
                          .code = code::uninitialize,
                          .cause = {.reason = Reason::not_initialised},
                          .text = "the stream was destroyed before its turn came"};
    }
  });
  if (queue.waiters != 0) tell_waiters(all, queue);
  return dropped;
}

void forget_outcome(Queue& queue, const TaskOutcome* outcome) {
  queue.tasks.for_each([&](Task& task) {
    if (task.outcome() == outcome) task.report_to(nullptr);
  });
}

void streams_before_fork() { stream_state.before_fork(); }
void streams_after_fork_in_parent() { stream_state.after_fork_in_parent(); }
void streams_after_fork_in_child() { stream_state.after_fork_in_child(); }

}  // namespace devshare::host
