// SPDX-License-Identifier: Apache-2.0
// Events and what they were recorded as. All of this belongs to the lock of the streams.
//
// An event is a name; what happens is a recording. Each aclrtRecordEvent begins a new one, and who waits has the
// recording of the moment when it began to wait: recording the event again does not move it.
#pragma once

#include "contexts.hpp"
#include "key.hpp"
#include "shared_moment.hpp"

#include <chrono>
#include <cstdint>
#include <memory>
#include <vector>

namespace devshare::host {

struct Queue;

struct Recording {
  bool happened = false;
  bool dropped = false;  // its stream was destroyed by force before: it will not happen, and holds nobody up
  std::chrono::steady_clock::time_point at;
  std::vector<Queue*> parked;  // streams that go on when it is over

  bool over() const noexcept { return happened || dropped; }
};

struct Event {
  static constexpr std::uint64_t kind = 2;

  std::uint64_t bits = 0;
  std::uint32_t slot = 0;
  std::uint32_t flags = 0;
  DeviceNumber device;
  std::shared_ptr<Recording> recording;  // the newest; null: none since it was made or reset

  // For other processes, or from one: then it has no recordings of its own.
  std::shared_ptr<SharedMoment> moment;
  bool imported = false;
  bool exported = false;  // and has a name
  KeyName name;

  void end() noexcept {
    recording.reset();
    moment.reset();
    imported = false;
    exported = false;
  }
};

inline constexpr std::size_t most_events = 65'535;

}  // namespace devshare::host
