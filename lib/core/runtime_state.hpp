// SPDX-License-Identifier: Apache-2.0
// The one runtime of the process, as the library keeps it: the public record and what only lib/ needs.
#pragma once

#include <devshare/runtime.hpp>

#include <array>

#include <sys/types.h>

namespace devshare::detail {

// More devices than any machine of today has; a larger id is no_such_device.
inline constexpr std::size_t max_devices = 64;

struct DeviceSlot {
  void* context = nullptr;      // its primary context; null until the device was first named
  std::int32_t number = -1;     // as the driver numbers it: what tickets carry
};

struct RuntimeState : RuntimeRecord {
  std::uint64_t own_session = session_step;  // the upper half of the word
  std::uint64_t word_of_vendor = 0;          // the word, of a runtime that tells nothing
  bool is_host = false;
  bool calls_taken = false;           // the table is that of the release that the first session plays
  bool initialised_here = false;      // devshare's aclInit was the first: it may finalize
  pid_t pid = -1;                     // the process this state belongs to; -1: opened in none yet
  std::uint64_t first_session = 0;    // of this process: objects of smaller ones are its parent's
  std::uint64_t open_session = 0;     // the session that open() hands out; 0: none
  std::uint64_t outlived_reported = 0;
  char origin[256] = {};
  std::array<DeviceSlot, max_devices> devices;
};

inline RuntimeState& state_of(const RuntimeRecord& record) noexcept {
  return const_cast<RuntimeState&>(static_cast<const RuntimeState&>(record));
}

// Whether an object was made before this process was forked.
bool of_another_process(const Session& session) noexcept;

// The kind of failure that a reason of the host runtime is.
Errc kind_of(Reason reason) noexcept;

// The context of the calling thread; null where it has none, which leaves no error text.
void* current_context(const RuntimeRecord& record) noexcept;

// The context of a device that Runtime::device() has initialised.
void* device_context(const RuntimeRecord& record, std::int32_t device) noexcept;

// A device's number as the driver has it, and back: -1 where this process does not see it.
std::int32_t driver_number(const RuntimeRecord& record, std::int32_t device) noexcept;
std::int32_t local_number(const RuntimeRecord& record, std::int32_t driver) noexcept;

}  // namespace devshare::detail
