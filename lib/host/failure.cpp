// SPDX-License-Identifier: Apache-2.0
#include "failure.hpp"

#include "codes.hpp"
#include "profile.hpp"

#include <fmt/format.h>

#include <utility>

namespace devshare::host {
namespace {

constinit thread_local Cause current_cause;  // apart from the strings: no destructor, so no guard on the fast path

struct ThreadMessages {
  std::string refused;  // by the call that is running
  std::string recent;   // of the last call that failed
  std::string handed_out;
  acl::Entry recent_call = acl::Entry::none;
  acl::aclError recent_code = 0;
};

constinit thread_local bool thread_ended = false;
constinit thread_local bool quiet = false;  // the call that is running was refused without a text

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
  current_cause = cause;
  quiet = false;
  if (ThreadMessages* const mine = messages()) mine->refused = std::move(text);
  return code;
}

acl::aclError refuse(acl::aclError code, Reason reason, std::string text) {
  return refuse(code, Cause{.reason = reason}, std::move(text));
}

acl::aclError refuse_quietly(acl::aclError code, Reason reason) noexcept {
  current_cause = {.reason = reason};
  quiet = true;
  return code;
}

const Cause& last_cause() noexcept { return current_cause; }

const std::string& last_text() noexcept {
  static const std::string& none = *new std::string;
  const ThreadMessages* const mine = messages();
  return mine != nullptr ? mine->refused : none;
}

void call_begins() noexcept { current_cause = {}; }

void call_ends(acl::Entry call, acl::aclError code) {
  if (code == 0) [[likely]] {
    current_cause = {};  // something inside may have been refused and got over
    return;
  }
  if (std::exchange(quiet, false)) return;
  ThreadMessages* const mine = messages();
  if (mine == nullptr) return;
  mine->recent = std::exchange(mine->refused, {});
  mine->recent_call = call;
  mine->recent_code = code;
}

std::string recent_message() {
  const ThreadMessages* const mine = messages();
  if (mine == nullptr || mine->recent_code == 0) return {};
  std::string text = fmt::format("{}: {}", entry_name(mine->recent_call), code_name(mine->recent_code));
  if (!mine->recent.empty()) text += ": " + mine->recent;
  return text;
}

const char* take_recent_message() {
  ThreadMessages* const mine = messages();
  if (mine == nullptr || mine->recent_code == 0) return nullptr;
  mine->handed_out = recent_message();
  mine->recent.clear();
  mine->recent_code = 0;
  return mine->handed_out.c_str();
}

}  // namespace devshare::host
