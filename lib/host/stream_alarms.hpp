// SPDX-License-Identifier: Apache-2.0
// Parked streams that are to be asked again at a certain time. All of this belongs to the lock of the streams.
#pragma once

#include "stream_state.hpp"

namespace devshare::host {

// Of one task of a stream. Ends with it, by clear() at the latest when the task is done or dropped.
class Alarm {
 public:
  void set(StreamState& all, Queue& queue, std::chrono::steady_clock::time_point when) {
    clear(all);
    entry_ = all.alarms.emplace(when, &queue);
    is_set_ = true;
    if (entry_ == all.alarms.begin()) all.work.notify_one();  // a worker that sleeps knows nothing of it yet
  }
  void clear(StreamState& all) {
    if (std::exchange(is_set_, false)) all.alarms.erase(entry_);
  }

 private:
  StreamState::Alarms::iterator entry_;
  bool is_set_ = false;
};

}  // namespace devshare::host
