// SPDX-License-Identifier: Apache-2.0
#include "failure.hpp"

#include "codes.hpp"
#include "fork.hpp"
#include "per_process.hpp"
#include "profile.hpp"

#include <fmt/format.h>

#include <atomic>
#include <mutex>
#include <utility>

namespace devshare::host {

constinit thread_local ThreadCall this_call;

namespace {

// The last call that failed.
struct Recent {
  std::string text;
  acl::Entry call = acl::Entry::none;
  acl::aclError code = 0;  // 0: there is none

  std::string in_words() const {
    if (code == 0) return {};
    std::string words = fmt::format("{}: {}", entry_name(call), code_name(code));
    if (!text.empty()) words += ": " + text;
    return words;
  }
};

struct ThreadMessages {
  std::string refused;  // by the call that is running
  Recent recent;
  std::string handed_out;
};

struct ProcessMessages : ProcessState<ProcessMessages> {
  std::atomic<TextsOf> whose{TextsOf::thread};
  Recent recent;

  void close_inherited() noexcept {}
};

PerProcess<ProcessMessages> process_messages;

// Null where each thread has its own.
ProcessMessages* of_process() noexcept {
  ProcessMessages* const all = process_messages.existing();
  return all != nullptr && all->whose.load(std::memory_order_relaxed) == TextsOf::process ? all : nullptr;
}

constinit thread_local bool thread_ended = false;

// Null once the thread's own objects have been destroyed: static objects still make calls then, and leave no text.
ThreadMessages* messages() noexcept {
  struct Holder {
    ThreadMessages messages;
    ~Holder() { thread_ended = true; }
  };
  if (thread_ended) return nullptr;
  thread_local Holder mine;
  return &mine.messages;
}

}  // namespace

acl::aclError refuse(acl::aclError code, const Cause& cause, std::string text) {
  this_call.cause = cause;
  this_call.quiet = false;
  if (ThreadMessages* const mine = messages()) mine->refused = std::move(text);
  return code;
}

acl::aclError refuse(acl::aclError code, Reason reason, std::string text) {
  return refuse(code, Cause{.reason = reason}, std::move(text));
}

acl::aclError refuse_quietly(acl::aclError code, Reason reason) noexcept {
  this_call.cause = {.reason = reason};
  this_call.quiet = true;
  return code;
}

const std::string& last_text() noexcept {
  static const std::string& none = *new std::string;
  const ThreadMessages* const mine = messages();
  return mine != nullptr ? mine->refused : none;
}

void keep_refusal(acl::Entry call, acl::aclError code) {
  if (std::exchange(this_call.quiet, false)) return;
  ThreadMessages* const mine = messages();
  if (mine == nullptr) return;
  Recent recent{std::exchange(mine->refused, {}), call, code};
  if (ProcessMessages* const all = of_process()) {
    const std::lock_guard lock(all->mutex);
    all->recent = std::move(recent);
  } else {
    mine->recent = std::move(recent);
  }
}

void keep_recent_messages(TextsOf whose) {
  if (whose == TextsOf::thread && process_messages.existing() == nullptr) return;
  process_messages.get().whose.store(whose, std::memory_order_relaxed);
}

std::string recent_message() {
  if (ProcessMessages* const all = of_process()) {
    const std::lock_guard lock(all->mutex);
    return all->recent.in_words();
  }
  const ThreadMessages* const mine = messages();
  return mine != nullptr ? mine->recent.in_words() : std::string();
}

const char* take_recent_message() {
  ThreadMessages* const mine = messages();
  if (mine == nullptr) return nullptr;
  Recent recent;
  if (ProcessMessages* const all = of_process()) {
    const std::lock_guard lock(all->mutex);
    recent = std::exchange(all->recent, {});
  } else {
    recent = std::exchange(mine->recent, {});
  }
  if (recent.code == 0) return nullptr;
  mine->handed_out = recent.in_words();
  return mine->handed_out.c_str();
}

void failure_before_fork() { process_messages.before_fork(); }
void failure_after_fork_in_parent() { process_messages.after_fork_in_parent(); }
void failure_after_fork_in_child() { process_messages.after_fork_in_child(); }

}  // namespace devshare::host
