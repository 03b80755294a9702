// SPDX-License-Identifier: Apache-2.0
// Notifies: a bit that a stream waits for and takes back. All of this belongs to the lock of the streams.
//
// The bit is in the process that created the notify, which alone waits on it (R46). An import is the name of one: to
// record it is to tell its creator.
#pragma once

#include "contexts.hpp"
#include "key.hpp"

#include <cstdint>
#include <deque>
#include <memory>

namespace devshare::host {

struct Queue;
struct StreamState;

struct NotifyBit {
  bool recorded = false;
  std::deque<Queue*> parked;  // streams that wait, in order: each takes one recording

  void record(StreamState& all);  // under the lock
};

struct Notify {
  static constexpr std::uint64_t kind = 3;

  std::uint64_t bits = 0;
  std::uint32_t slot = 0;
  DeviceNumber device;
  std::shared_ptr<NotifyBit> bit;  // null: imported
  bool shared = false;             // exported, or imported: then it has a name
  KeyName name;

  bool imported() const noexcept { return bit == nullptr; }
  void end() noexcept {
    bit.reset();
    shared = false;
  }
};

}  // namespace devshare::host
