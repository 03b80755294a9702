// SPDX-License-Identifier: Apache-2.0
// A task: what stands in a stream and is carried out in its turn.
#pragma once

#include "failure.hpp"
#include "task_memory.hpp"

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

namespace devshare::host {

class EndedPins;
struct Queue;
struct StreamState;

// How a task ended, if not well: what the synchronise that tells of it returns.
struct TaskFailure {
  acl::Entry call = acl::Entry::none;
  acl::aclError code = 0;
  Cause cause;
  std::string text;
  std::uint64_t order = 0;  // of those that a stream keeps: which came first
};

// For the thread that enqueued a task and waits for this one (pageable memory). Under the lock of the streams.
struct TaskOutcome {
  bool done = false;
  TaskFailure failure;
};

class Task {
 public:
  enum class Kind : std::uint8_t {
    brief,          // run() is over at once: what it held, and that it is done, may be told with those that follow it
    work,           // run() takes its time but never waits for another task, or does what others can see
    user_function,  // run() may wait for whatever it likes: no other stream may have to wait for its worker
    control,        // pass(): orders streams, under their lock
  };

  Task(acl::Entry call, Kind kind) noexcept : call_(call), kind_(kind) {}
  virtual ~Task() = default;
  Task(const Task&) = delete;
  Task& operator=(const Task&) = delete;

  // Any memory of a task serves any other of the usual size.
  static void* operator new(std::size_t bytes) { return TaskMemory::allocate(bytes); }
  static void* operator new(std::size_t, void* memory) noexcept { return memory; }
  static void operator delete(void* memory) noexcept { TaskMemory::free(memory); }

  // On a worker, with no lock held. 0, or a refusal that is recorded in the thread.
  virtual acl::aclError run() { return 0; }

  // Under the lock of the streams. False: the stream is parked, and whoever it waits for makes it ready again; then
  // this is asked anew. True: the task is done, and has failed if it says so.
  virtual bool pass(StreamState&, Queue&, TaskFailure*) { return true; }

  // It is over: what it has pinned is given up with what others of its row had. What is not is when it ends.
  virtual void give_up(EndedPins&) noexcept {}

  // Under the lock: it will not be carried out, nor asked again.
  virtual void dropped(StreamState&, Queue&) {}

  acl::Entry call() const noexcept { return call_; }
  Kind kind() const noexcept { return kind_; }

  // Where to tell how it ended, in place of the stream. Null: nowhere.
  void report_to(TaskOutcome* outcome) noexcept { outcome_ = outcome; }
  TaskOutcome* outcome() const noexcept { return outcome_; }

 private:
  friend class TaskList;

  acl::Entry call_;
  Kind kind_;
  TaskOutcome* outcome_ = nullptr;
  Task* next_ = nullptr;
};

// Ends a task, and keeps what it was made of.
inline void end_task(std::unique_ptr<Task> task, TaskMemory& memory) noexcept {
  Task* const ended = task.release();
  ended->~Task();
  memory.add(ended);
}

// Tasks in order. Owns them.
class TaskList {
 public:
  TaskList() noexcept = default;
  TaskList(TaskList&& other) noexcept
      : first_(std::exchange(other.first_, nullptr)), last_(std::exchange(other.last_, nullptr)) {}
  TaskList& operator=(TaskList&& other) noexcept {
    TaskList taken(std::move(other));
    std::swap(first_, taken.first_);
    std::swap(last_, taken.last_);
    return *this;
  }
  ~TaskList() {
    while (!empty()) take();
  }

  bool empty() const noexcept { return first_ == nullptr; }
  Task& front() const noexcept { return *first_; }

  void add(std::unique_ptr<Task> task) noexcept {
    Task* const added = task.release();
    added->next_ = nullptr;
    (first_ == nullptr ? first_ : last_->next_) = added;
    last_ = added;
  }
  std::unique_ptr<Task> take() noexcept {
    std::unique_ptr<Task> task(first_);
    first_ = first_->next_;
    if (first_ == nullptr) last_ = nullptr;
    return task;
  }

  // Puts what was taken off the front there again.
  void put_back(TaskList&& row) noexcept {
    if (row.empty()) return;
    row.last_->next_ = first_;
    if (first_ == nullptr) last_ = row.last_;
    first_ = std::exchange(row.first_, nullptr);
    row.last_ = nullptr;
  }

  template <class Visit>
  void for_each(Visit visit) const {
    for (Task* task = first_; task != nullptr; task = task->next_) visit(*task);
  }

 private:
  Task* first_ = nullptr;
  Task* last_ = nullptr;
};

}  // namespace devshare::host
