// SPDX-License-Identifier: Apache-2.0
#include "instrument.hpp"

#include "failure.hpp"
#include "faults.hpp"
#include "fork.hpp"
#include "journal.hpp"
#include "profile.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <ctime>
#include <mutex>
#include <system_error>
#include <thread>

namespace devshare::host {
namespace {

// A forked child goes on with the faults, delays and the journal of its parent: it is the parent's test.
struct Instrument {
  std::mutex mutex;
  Faults asked;     // through devshare/instrument.hpp
  Faults switched;  // by the profile in force, of which the switches are
  Faults tasks_asked;
  Faults tasks_switched;
  std::vector<FaultSwitch> fault_switches;
  std::vector<DelaySwitch> delay_switches;
  std::vector<FaultSwitch> task_fault_switches;
  std::vector<DelaySwitch> task_delay_switches;
  std::string journal_switch;
  Journal journal;
  bool configured = false;

  void settle() {  // under the mutex, after every change
    instrument_is_armed.store(!configured || asked.any() || switched.any() || journal.on(), std::memory_order_relaxed);
    task_instrument_is_armed.store(tasks_asked.any() || tasks_switched.any(), std::memory_order_relaxed);
  }
};

Instrument& instrument() {
  static Instrument& made = *new Instrument;  // immortal: calls may come after the destruction of statics
  return made;
}

std::uint64_t now_ns() noexcept {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000U + static_cast<std::uint64_t>(now.tv_nsec);
}

Faults::Verdict next_of(Faults& switched, Faults& asked, acl::Entry entry) {
  Faults::Verdict verdict = switched.next(entry);
  const Faults::Verdict other = asked.next(entry);
  verdict.sleep_ms = std::max(verdict.sleep_ms, other.sleep_ms);
  if (other.code != 0) verdict.code = other.code;
  return verdict;
}

// Only what has changed: another capacity must not arm a fault again that has struck.
void take_over(const std::vector<FaultSwitch>& faults, const std::vector<DelaySwitch>& delays,
               std::vector<FaultSwitch>* kept_faults, std::vector<DelaySwitch>* kept_delays, Faults* armed) {
  if (faults == *kept_faults && delays == *kept_delays) return;
  *kept_faults = faults;
  *kept_delays = delays;
  armed->clear();
  for (const FaultSwitch& fault : faults) {
    if (fault.probability > 0) {
      armed->fail_sometimes(fault.call, fault.probability, fault.seed, fault.code);
    } else {
      armed->fail_nth(fault.call, fault.nth, fault.code);
    }
  }
  for (const DelaySwitch& delay : delays) armed->delay(delay.call, delay.milliseconds);
}

}  // namespace

acl::aclError instrument_before(acl::Entry entry) {
  (void)profile();  // the first call reads the environment, and with it what is armed
  Faults::Verdict verdict;
  {
    Instrument& all = instrument();
    const std::lock_guard lock(all.mutex);
    verdict = next_of(all.switched, all.asked, entry);
    all.settle();
  }
  if (verdict.sleep_ms != 0) std::this_thread::sleep_for(std::chrono::milliseconds(verdict.sleep_ms));
  if (verdict.code == 0) return 0;
  return refuse(
      verdict.code, Reason::injected,
      fmt::format("a fault that was asked for: {} returns {} and does nothing", entry_name(entry), verdict.code));
}

TaskVerdict instrument_task(acl::Entry call) {
  Instrument& all = instrument();
  const std::lock_guard lock(all.mutex);
  const Faults::Verdict verdict = next_of(all.tasks_switched, all.tasks_asked, call);
  all.settle();
  return {verdict.sleep_ms, verdict.code};
}

void instrument_after(acl::Entry entry, acl::aclError result, std::string_view arguments, std::uint64_t started_ns) {
  const std::uint64_t ended_ns = now_ns();
  Instrument& all = instrument();
  const std::lock_guard lock(all.mutex);
  if (!all.journal.on()) return;
  all.journal.add({.order = started_ns,
                   .took = ended_ns > started_ns ? ended_ns - started_ns : 0,
                   .pid = ::getpid(),
                   .tid = ::gettid(),
                   .call = entry,
                   .result = result,
                   .arguments = std::string(arguments)});
  all.settle();
}

std::string instrument_configure(const Profile& profile) {
  Instrument& all = instrument();
  const std::lock_guard lock(all.mutex);
  all.configured = true;
  take_over(profile.faults, profile.delays, &all.fault_switches, &all.delay_switches, &all.switched);
  take_over(profile.task_faults, profile.task_delays, &all.task_fault_switches, &all.task_delay_switches,
            &all.tasks_switched);
  std::string error;
  if (profile.journal != all.journal_switch) {
    all.journal_switch = profile.journal;
    if (const int failed = all.journal.write_to(profile.journal); failed != 0) {
      error = fmt::format("DEVSHARE_HOST_JOURNAL={} cannot be opened: {}.", profile.journal,
                          std::generic_category().message(failed));
    }
  }
  all.settle();
  return error;
}

void instrument_before_fork() { instrument().mutex.lock(); }
void instrument_after_fork_in_parent() { instrument().mutex.unlock(); }
void instrument_after_fork_in_child() { instrument().mutex.unlock(); }

// --- devshare/instrument.hpp ---

bool set(std::string_view name, std::string_view value) { return override_switch(name, value); }
void unset_all() { drop_switch_overrides(); }

void fail(acl::Entry call, std::uint32_t nth, acl::aclError code) {
  if (code == 0 || call >= acl::Entry::none) return;
  Instrument& all = instrument();
  const std::lock_guard lock(all.mutex);
  all.asked.fail_nth(call, nth, code);
  all.settle();
}

void fail_with_probability(acl::Entry call, double probability, std::uint64_t seed, acl::aclError code) {
  if (code == 0 || call >= acl::Entry::none || !(probability > 0)) return;
  Instrument& all = instrument();
  const std::lock_guard lock(all.mutex);
  all.asked.fail_sometimes(call, probability, seed, code);
  all.settle();
}

void delay(acl::Entry call, std::uint32_t milliseconds) {
  if (call >= acl::Entry::none) return;
  Instrument& all = instrument();
  const std::lock_guard lock(all.mutex);
  all.asked.delay(call, milliseconds);
  all.settle();
}

void fail_task(acl::Entry call, std::uint32_t nth, acl::aclError code) {
  if (code == 0 || call >= acl::Entry::none) return;
  Instrument& all = instrument();
  const std::lock_guard lock(all.mutex);
  all.tasks_asked.fail_nth(call, nth, code);
  all.settle();
}

void delay_task(acl::Entry call, std::uint32_t milliseconds) {
  if (call >= acl::Entry::none) return;
  Instrument& all = instrument();
  const std::lock_guard lock(all.mutex);
  all.tasks_asked.delay(call, milliseconds);
  all.settle();
}

void clear() {
  (void)profile();  // so that a fault of the environment is not armed after it was dropped
  Instrument& all = instrument();
  const std::lock_guard lock(all.mutex);
  all.asked.clear();
  all.switched.clear();
  all.tasks_asked.clear();
  all.tasks_switched.clear();
  all.settle();
}

bool journal_to(std::string_view path) {
  (void)profile();
  Instrument& all = instrument();
  const std::lock_guard lock(all.mutex);
  const int failed = all.journal.write_to(path);
  all.settle();
  errno = failed;
  return failed == 0;
}

void record_calls(bool on) {
  Instrument& all = instrument();
  const std::lock_guard lock(all.mutex);
  all.journal.keep(on);
  all.settle();
}

std::vector<CallRecord> recorded_calls() {
  Instrument& all = instrument();
  const std::lock_guard lock(all.mutex);
  return all.journal.kept();
}

std::uint64_t journal_lines_lost() noexcept {
  Instrument& all = instrument();
  const std::lock_guard lock(all.mutex);
  return all.journal.lost();
}

}  // namespace devshare::host
