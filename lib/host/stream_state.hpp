// SPDX-License-Identifier: Apache-2.0
// Streams as queues, and the few threads that work them off. For the files that put tasks into streams.
//
// A stream is a queue and no thread. Workers take a stream that has something to do, run some of its tasks and put it
// back, so that its tasks run in order and one at a time. A stream that has to wait for something is parked: it holds
// up no worker. The first task that is enqueued starts the first worker, and with nothing to do all of them sleep
// without a time limit.
#pragma once

#include "contexts.hpp"
#include "event_record.hpp"
#include "notify_record.hpp"
#include "numbered.hpp"
#include "per_process.hpp"
#include "task.hpp"

#include <array>
#include <chrono>
#include <condition_variable>
#include <map>
#include <memory>
#include <unordered_map>
#include <vector>

#include <pthread.h>

namespace devshare::host {

struct Queue {
  static constexpr std::uint64_t kind = 1;
  enum class State : std::uint8_t { idle, ready, running, parked };

  std::uint64_t bits = 0;
  std::uint32_t slot = 0;
  std::uint32_t priority = 0;
  ContextNumber context;
  bool is_default = false;
  bool ending = false;  // takes nothing new
  State state = State::idle;
  TaskList tasks;
  Queue* next_ready = nullptr;

  // Tasks so far. What was enqueued before a moment is done when `completed` has reached what `enqueued` was.
  std::uint64_t enqueued = 0;
  std::uint64_t completed = 0;
  std::uint32_t waiters = 0;             // threads that wait for progress of this stream
  std::uint64_t wake_at = UINT64_MAX;    // the least of `completed` that one of them waits for
  bool forced = false;                   // it ends, and what has not begun is dropped
  std::unique_ptr<TaskFailure> failure;  // the first that no synchronise has reported

  void end() noexcept { failure.reset(); }
};

struct StreamState : ProcessState<StreamState> {
  static constexpr std::size_t base_workers = 2;
  static constexpr std::size_t most_workers = 64;
  static constexpr std::size_t priorities = acl::lowest_stream_priority + 1;

  std::condition_variable work;      // a stream has become ready, or all is to end
  std::condition_variable progress;  // a task is done

  Numbered<Queue> queues;
  std::unordered_map<std::uint64_t, Queue*> defaults;  // by context
  Numbered<Event> events;
  Numbered<Notify> notifies;

  struct ReadyList {
    Queue* first = nullptr;
    Queue* last = nullptr;
  };
  std::array<ReadyList, priorities> ready;
  std::size_t ready_count = 0;
  std::size_t running_count = 0;

  // Parked streams that are to be asked again at a certain time: see stream_alarms.hpp.
  using Alarms = std::multimap<std::chrono::steady_clock::time_point, Queue*>;
  Alarms alarms;

  static constexpr std::size_t most_task_memory = 4000;  // pieces: half a MB
  TaskMemory task_memory;

  std::vector<pthread_t> threads;  // of workers, to be joined
  std::size_t idle_workers = 0;
  std::size_t held_workers = 0;  // by user functions and by delays that a test asked for
  std::size_t failures = 0;      // streams with one
  std::uint64_t last_failure = 0;
  bool closing = false;   // aclFinalize waits for all streams to rest
  bool closed = false;    // and has: they take nothing new
  bool stopping = false;  // workers are to end

  void close_inherited() noexcept {}
};

extern PerProcess<StreamState> stream_state;

// Who enqueues: the calling thread's context, and the stream it names.
struct StreamPlace {
  acl::aclrtStream stream = nullptr;
  ContextNumber context;
};
// The calling thread's context, or a refusal (R1).
acl::aclError place_of(acl::aclrtStream stream, StreamPlace* out);

// A stream that something is put into: has the lock of the streams until it ends, if there is such a stream.
class OpenStream {
 public:
  explicit OpenStream(const StreamPlace& place);
  ~OpenStream();
  OpenStream(const OpenStream&) = delete;
  OpenStream& operator=(const OpenStream&) = delete;

  acl::aclError refused() const noexcept { return refused_; }  // 0: the following may be called

  StreamState& all() noexcept { return all_; }
  Queue& queue() noexcept { return *queue_; }
  std::unique_lock<std::mutex>& lock() noexcept { return lock_; }
  void add(std::unique_ptr<Task> task);
  // The same, and makes the task, in memory that others have left if there is some.
  template <class T, class... Arguments>
  T& make(Arguments&&... arguments) {
    static_assert(sizeof(T) <= TaskMemory::piece_bytes);
    void* const left = all_.task_memory.take();
    auto* const task = left != nullptr ? new (left) T(std::forward<Arguments>(arguments)...)
                                       : new T(std::forward<Arguments>(arguments)...);
    add(std::unique_ptr<Task>(task));
    return *task;
  }

 private:
  StreamState& all_;
  std::unique_lock<std::mutex> lock_;
  Queue* queue_ = nullptr;
  acl::aclError refused_ = 0;
  bool wake_ = false;
};

// Puts a task behind what is in the stream.
acl::aclError enqueue(const StreamPlace& place, std::unique_ptr<Task> task);
template <class T, class... Arguments>
acl::aclError enqueue(const StreamPlace& place, Arguments&&... arguments) {
  OpenStream stream(place);
  if (stream.refused() != 0) return stream.refused();
  stream.make<T>(std::forward<Arguments>(arguments)...);
  return acl::code::success;
}
// The same, and waits until it is done. Its failure is this call's, and not the stream's.
acl::aclError enqueue_and_wait(const StreamPlace& place, std::unique_ptr<Task> task);

// Why find_queue found none.
acl::aclError refuse_stream(const StreamPlace& place);

// --- Under the lock ---

// The stream that a handle names, made now if it is the default stream of a context that had none. Null when there is
// none, or it belongs to another device.
Queue* find_queue(StreamState& all, const StreamPlace& place);

Queue* take_queue(StreamState& all, ContextNumber context, std::uint32_t priority, bool is_default,
                  std::size_t most);                   // null: there are as many
void give_back_queue(StreamState& all, Queue& queue);  // one that is idle, empty and waited for by nobody

// The parked stream goes on: its first task is asked again.
void resume(StreamState& all, Queue& queue);

// Those who wait for progress of a stream look whether there is enough.
void tell_waiters(StreamState& all, Queue& queue);

// A thread that waited for progress of a stream does so no longer.
void leave_queue(StreamState& all, Queue& queue);

// Takes everything out of a stream but the task that is running. What is returned is to end without the lock.
TaskList drop_tasks(StreamState& all, Queue& queue);

// No task reports there any more.
void forget_outcome(Queue& queue, const TaskOutcome* outcome);

}  // namespace devshare::host
