// SPDX-License-Identifier: Apache-2.0
// The testing instrument as the entry layer sees it: faults and delays before a call, a journal line after it.
// One load says that nothing is armed; only then is a call as fast as its body.
#pragma once

#include <devshare/acl/table.hpp>

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>

namespace devshare::host {

struct Profile;

// True until the environment has been read, then while a fault, a delay or a journal is set.
inline std::atomic<bool> instrument_is_armed{true};

// True when the entry layer must call the two functions below.
inline bool instrument_armed() noexcept { return instrument_is_armed.load(std::memory_order_relaxed); }

// Sleeps the delay asked for; returns the code to be returned instead of making the call (recorded as this thread's
// refusal, Reason::injected), or 0.
acl::aclError instrument_before(acl::Entry entry);

// The same for what stands in a stream, when its turn comes.
inline std::atomic<bool> task_instrument_is_armed{false};
inline bool task_instrument_armed() noexcept { return task_instrument_is_armed.load(std::memory_order_relaxed); }

struct TaskVerdict {
  std::uint32_t sleep_ms = 0;  // first
  acl::aclError code = 0;      // then this, in place of the task; 0: the task
};
TaskVerdict instrument_task(acl::Entry call);

// Writes the journal line. `arguments` is a JSON object, e.g. {"size":4096}. `started_ns` is CLOCK_MONOTONIC.
void instrument_after(acl::Entry entry, acl::aclError result, std::string_view arguments, std::uint64_t started_ns);

// Takes over the journal, the faults and the delays of a profile that comes into force. Returns why one cannot be, or
// "".
std::string instrument_configure(const Profile& profile);

}  // namespace devshare::host
