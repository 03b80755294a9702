// SPDX-License-Identifier: Apache-2.0
// One thread at a time does the work of a connection; whoever else waits for its outcome waits for that thread, or takes
// the next turn. So everything has a thread that does it as soon as anybody waits, and none otherwise.
#pragma once

#include <devshare/deadline.hpp>

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

namespace devshare::detail {

class Turn {
 public:
  // Waits until done(), which is asked under the lock. work(deadline), without the lock, does what there is to do, and
  // where there is nothing waits for it. Works at least once where it can, even if the deadline has passed. False when
  // the deadline passed first; and in a hook, which runs inside of work and would wait for itself.
  template <class Done, class Work>
  bool wait(std::unique_lock<std::mutex>& lock, Deadline deadline, Done done, Work work) {
    bool worked = false;
    while (!done()) {
      if (mine() || (deadline.passed() && (worked || taken_))) return false;
      if (taken_) {
        wait_for_change(lock, deadline);
      } else {
        take(lock, [&] { work(deadline); });
        worked = true;
      }
    }
    return true;
  }

  // Takes the turn for one piece of work, if it is free.
  template <class Work>
  bool try_once(std::unique_lock<std::mutex>& lock, Work work) {
    if (taken_) return false;
    take(lock, work);
    return true;
  }

  // Whether this thread has the turn: it is in a hook then.
  bool mine() const noexcept { return taken_ && owner_ == std::this_thread::get_id(); }

  // Tells those who wait that something may be done now. Under the lock.
  void changed() noexcept { changed_.notify_all(); }

 private:
  template <class Work>
  void take(std::unique_lock<std::mutex>& lock, Work work) {
    taken_ = true;
    owner_ = std::this_thread::get_id();
    lock.unlock();
    work();
    lock.lock();
    taken_ = false;
    changed_.notify_all();
  }
  void wait_for_change(std::unique_lock<std::mutex>& lock, Deadline deadline) {
    if (deadline.is_never()) {
      changed_.wait(lock);
    } else {
      changed_.wait_for(lock, std::chrono::nanoseconds(deadline.nanoseconds_left()));
    }
  }

  bool taken_ = false;
  std::thread::id owner_;
  std::condition_variable changed_;
};

}  // namespace devshare::detail
