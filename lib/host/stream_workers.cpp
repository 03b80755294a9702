// SPDX-License-Identifier: Apache-2.0
#include "stream_workers.hpp"

#include "block.hpp"
#include "instrument.hpp"
#include "profile.hpp"
#include "signals_blocked.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

namespace devshare::host {
namespace {

using Lock = std::unique_lock<std::mutex>;

// So many tasks of a stream before another one has its turn.
constexpr int tasks_in_a_row = 16;

// And for so long.
constexpr std::chrono::microseconds row_time{50};

// How long a worker that was started beyond the usual ones waits for more work before it ends.
constexpr std::chrono::seconds spare_time{1};

std::size_t wanted_workers(const StreamState& all) {
  return std::min(StreamState::most_workers, StreamState::base_workers + all.held_workers);
}

void* worker_main(void* state);

int start_worker(StreamState& all) {
  const AllSignalsBlocked blocked;
  pthread_t thread{};
  const int error = ::pthread_create(&thread, nullptr, &worker_main, &all);
  if (error == 0) all.threads.push_back(thread);
  return error;
}

// More is ready than sleepers will take: another worker, if there may be one. True when a sleeper is to be woken.
bool summon(StreamState& all) {
  if (all.idle_workers < all.ready_count && all.threads.size() < wanted_workers(all)) {
    (void)start_worker(all);  // without it, those that are there go on
  }
  return all.idle_workers != 0;
}

Queue* take_ready(StreamState& all) {
  for (StreamState::ReadyList& list : all.ready) {
    Queue* const queue = list.first;
    if (queue == nullptr) continue;
    list.first = queue->next_ready;
    if (list.first == nullptr) list.last = nullptr;
    --all.ready_count;
    return queue;
  }
  return nullptr;
}

// While a worker is held by what is no work of ours, another may take its place: what a function in one stream waits
// for may be in another.
class Held {
 public:
  explicit Held(StreamState& all) : all_(all) {
    Lock lock(all_.mutex);
    ++all_.held_workers;
    const bool wake = all_.ready_count != 0 && summon(all_);
    lock.unlock();
    if (wake) all_.work.notify_one();
  }
  ~Held() {
    const std::lock_guard lock(all_.mutex);
    --all_.held_workers;
    // Some of those that sleep are too many now, and begin to count their time.
    if (all_.idle_workers != 0 && all_.threads.size() > wanted_workers(all_)) all_.work.notify_all();
  }
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;

 private:
  StreamState& all_;
};

// What a test has asked for in the place of this task, or before it.
acl::aclError interfere(StreamState& all, acl::Entry call) {
  const TaskVerdict verdict = instrument_task(call);
  if (verdict.sleep_ms != 0) {
    const Held held(all);
    std::this_thread::sleep_for(std::chrono::milliseconds(verdict.sleep_ms));
  }
  if (verdict.code == 0) return 0;
  return refuse(verdict.code, Reason::injected,
                fmt::format("a fault that was asked for: the task of {} fails with {} and does nothing",
                            entry_name(call), verdict.code));
}

acl::aclError run(StreamState& all, Task& task) {
  if (task.kind() != Task::Kind::user_function) return task.run();
  const Held held(all);
  return task.run();
}

TaskFailure carry_out(StreamState& all, Task& task) {
  call_begins();
  acl::aclError code = task_instrument_armed() ? interfere(all, task.call()) : 0;
  if (code == 0) code = run(all, task);
  if (code == 0) [[likely]]
    return {};
  return {task.call(), code, last_cause(), last_text()};
}

void keep(StreamState& all, Queue& queue, TaskFailure&& failure) {
  if (failure.code == 0 || queue.failure != nullptr) return;
  queue.failure = std::make_unique<TaskFailure>(std::move(failure));
  queue.failure->order = ++all.last_failure;
  ++all.failures;
}

void done(StreamState& all, Queue& queue, TaskOutcome* outcome, TaskFailure&& failure) {
  ++queue.completed;
  if (outcome != nullptr) {
    outcome->done = true;
    outcome->failure = std::move(failure);
    return tell_waiters(all, queue);
  }
  keep(all, queue, std::move(failure));
  if (queue.completed >= queue.wake_at) tell_waiters(all, queue);
}

void carry_out_next(StreamState& all, Queue& queue, Lock& lock) {
  std::unique_ptr<Task> task = queue.tasks.take();
  lock.unlock();
  TaskFailure failure = carry_out(all, *task);
  TaskOutcome* const outcome = task->outcome();
  task.reset();  // its memory is free again before anybody hears that it is done
  lock.lock();
  done(all, queue, outcome, std::move(failure));
}

bool is_brief(const Task& task) { return task.kind() == Task::Kind::brief && task.outcome() == nullptr; }

// Brief tasks that stand in a row, without the lock in between: who enqueues more is not in its way. All that is in the
// stream is taken at once, since to look at a task takes longer than anybody should have to wait for the lock; what is
// left goes back. It is over when some time has gone by, so that nobody waits for long to hear of the first.
int carry_out_row(StreamState& all, Queue& queue, Lock& lock) {
  using Clock = std::chrono::steady_clock;
  TaskList row = std::move(queue.tasks);
  lock.unlock();
  const Clock::time_point end = Clock::now() + row_time;
  TaskFailure first;
  TaskMemory left;
  int carried_out = 0;
  {
    EndedPins pins;  // end here: the memory is free again before anybody hears that the tasks are done
    do {
      std::unique_ptr<Task> task = row.take();
      TaskFailure failure = carry_out(all, *task);
      if (failure.code != 0 && first.code == 0) first = std::move(failure);
      task->give_up(pins);
      end_task(std::move(task), left);
      ++carried_out;
    } while (!row.empty() && is_brief(row.front()) && Clock::now() < end);
  }
  lock.lock();
  if (all.task_memory.size() < StreamState::most_task_memory) all.task_memory.add(std::move(left));
  keep(all, queue, std::move(first));
  queue.completed += static_cast<std::uint64_t>(carried_out);
  queue.tasks.put_back(std::move(row));
  const TaskList dropped = queue.forced ? drop_tasks(all, queue) : TaskList();
  if (queue.completed >= queue.wake_at) tell_waiters(all, queue);
  return carried_out;
}

// Some tasks of a stream, in order.
void take_turn(StreamState& all, Queue& queue, Lock& lock) {
  queue.state = Queue::State::running;
  ++all.running_count;
  int left = tasks_in_a_row;
  while (left > 0 && !queue.tasks.empty()) {
    Task& next = queue.tasks.front();
    if (is_brief(next) && !instrument_armed()) {
      left -= carry_out_row(all, queue, lock);
      continue;
    }
    --left;
    if (next.kind() != Task::Kind::control) {
      carry_out_next(all, queue, lock);
      continue;
    }
    TaskFailure failure;
    if (!next.pass(all, queue, &failure)) {
      queue.state = Queue::State::parked;
      break;
    }
    const std::unique_ptr<Task> passed = queue.tasks.take();
    done(all, queue, passed->outcome(), std::move(failure));
  }
  --all.running_count;
  if (queue.state == Queue::State::running) {
    queue.state = Queue::State::idle;
    if (!queue.tasks.empty()) (void)make_ready(all, queue);
  }
  if (queue.ending || all.closing) tell_waiters(all, queue);
}

// Whose time has come is asked again. The alarm ends when it is.
void ring(StreamState& all) {
  if (all.alarms.empty()) return;
  const auto now = std::chrono::steady_clock::now();
  for (auto& [when, queue] : all.alarms) {
    if (when > now) break;
    resume(all, *queue);
  }
}

// Sleeps until there may be something to do. False: the worker is one too many and ends.
bool rest(StreamState& all, Lock& lock) {
  using Clock = std::chrono::steady_clock;
  const bool spare = all.threads.size() > wanted_workers(all);
  const Clock::time_point end_of_spare = Clock::now() + spare_time;
  Clock::time_point until = spare ? end_of_spare : Clock::time_point::max();
  if (!all.alarms.empty()) until = std::min(until, all.alarms.begin()->first);
  ++all.idle_workers;
  if (until == Clock::time_point::max()) {
    all.work.wait(lock);
  } else {
    all.work.wait_until(lock, until);
  }
  --all.idle_workers;
  const bool too_many = spare && all.threads.size() > wanted_workers(all);
  return !too_many || all.ready_count != 0 || all.stopping || Clock::now() < end_of_spare;
}

// Nobody joins a worker that ends by itself.
void retire(StreamState& all) {
  const pthread_t self = ::pthread_self();
  const auto is_self = [&](pthread_t thread) { return ::pthread_equal(thread, self) != 0; };
  all.threads.erase(std::find_if(all.threads.begin(), all.threads.end(), is_self));
  ::pthread_detach(self);
}

void* worker_main(void* state) {
  ::pthread_setname_np(::pthread_self(), "devshare-stream");
  StreamState& all = *static_cast<StreamState*>(state);
  Lock lock(all.mutex);
  while (true) {
    ring(all);
    if (Queue* const queue = take_ready(all)) {
      take_turn(all, *queue, lock);
    } else if (all.stopping) {
      return nullptr;
    } else if (!rest(all, lock)) {
      retire(all);
      return nullptr;
    }
  }
}

}  // namespace

int start_first_worker(StreamState& all) { return start_worker(all); }

bool make_ready(StreamState& all, Queue& queue) {
  StreamState::ReadyList& list = all.ready[queue.priority];
  queue.state = Queue::State::ready;
  queue.next_ready = nullptr;
  (list.first == nullptr ? list.first : list.last->next_ready) = &queue;
  list.last = &queue;
  ++all.ready_count;
  return summon(all);
}

void unmake_ready(StreamState& all, Queue& queue) {
  StreamState::ReadyList& list = all.ready[queue.priority];
  Queue* before = nullptr;
  for (Queue* each = list.first; each != &queue; each = each->next_ready) before = each;
  (before == nullptr ? list.first : before->next_ready) = queue.next_ready;
  if (list.last == &queue) list.last = before;
  queue.state = Queue::State::idle;
  --all.ready_count;
}

void join_workers(StreamState& all, Lock& lock) {
  all.stopping = true;
  const std::vector<pthread_t> ended = std::move(all.threads);
  all.threads.clear();
  lock.unlock();
  all.work.notify_all();
  for (const pthread_t thread : ended) ::pthread_join(thread, nullptr);
  lock.lock();
  all.stopping = false;
}

}  // namespace devshare::host
