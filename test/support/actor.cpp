// SPDX-License-Identifier: Apache-2.0
// The actor's side of a story.
#include "story.hpp"
#include "story_wire.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <system_error>

namespace devshare::test {

using story::Frame;
using story::Op;

namespace {

Bytes bytes_of(const Frame& message) {
  Bytes bytes(message.data.size());
  std::transform(message.data.begin(), message.data.end(), bytes.begin(),
                 [](char c) { return static_cast<std::byte>(c); });
  return bytes;
}

}  // namespace

Actor::Actor(std::string name, story::Channel& channel) : name_(std::move(name)), channel_(channel) {}

void Actor::tell(const Frame& frame) {
  if (!channel_.send(frame)) {
    std::cerr << name_ << ": the supervisor is gone, or a text is too long for it\n";
    ::_exit(70);
  }
}

Frame Actor::ask(const Frame& frame) {
  Frame answer = ask_what_may_never_be(frame);
  if (answer.op != Op::yes) fail(answer.name);
  return answer;
}

Frame Actor::ask_what_may_never_be(const Frame& frame) {
  Frame answer;
  const std::lock_guard lock(mutex_);
  tell(frame);
  if (!channel_.receive(&answer, true)) ::_exit(70);  // the supervisor is gone
  return answer;
}

void Actor::send_bytes(std::string_view to, const void* data, std::size_t size) {
  if (size > max_story_message) fail(fmt::format("a message of {} bytes is too long for a story", size));
  const std::lock_guard lock(mutex_);
  tell({Op::send, std::string(to), {}, std::string(static_cast<const char*>(data), size)});
}

Bytes Actor::receive_bytes(std::string_view from) {
  return bytes_of(ask({Op::receive, std::string(from), {}, {}}));
}

std::optional<Bytes> Actor::receive_if_sent(std::string_view from) {
  const Frame answer = ask_what_may_never_be({Op::receive, std::string(from), {}, {}});
  if (answer.op != Op::yes) return std::nullopt;
  return bytes_of(answer);
}

void Actor::step(std::string_view name) { ask({Op::step, {}, std::string(name), {}}); }

void Actor::pause_until(std::string_view who, std::string_view step) {
  ask({Op::pause, std::string(who), std::string(step), {}});
}

bool Actor::sees_step(std::string_view who, std::string_view step) {
  return ask_what_may_never_be({Op::pause, std::string(who), std::string(step), {}}).op == Op::yes;
}

void Actor::pause_until_ended(std::string_view who) { ask({Op::pause_end, std::string(who), {}, {}}); }

pid_t Actor::pid_of(std::string_view who) { return ask({Op::pid_of, std::string(who), {}, {}}).number; }

bool Actor::expect(bool condition, std::string_view sentence, const char* file, int line) {
  const std::lock_guard lock(mutex_);
  if (condition) {
    tell({Op::checked, {}, {}, {}});
  } else {
    tell({Op::failed, {}, fmt::format("{} ({}:{})", sentence.substr(0, max_story_message), file, line), {}});
  }
  return condition;
}

bool Actor::unequal(const std::string& actual, const std::string& expected, std::string_view sentence, const char* file,
                    int line) {
  return expect(false, fmt::format("{}: {} instead of {}", sentence, actual, expected), file, line);
}

void Actor::wrong_size(std::string_view from, std::size_t size, std::size_t expected) {
  fail(fmt::format("a message of {} bytes from {} where {} were expected", size, from, expected));
}

void Actor::fail(std::string_view sentence, const char* file, int line) {
  expect(false, sentence, file, line);
  tell({Op::abandoned, {}, {}, {}});
  std::cout.flush();
  std::fflush(nullptr);
  ::_exit(1);
}

void Actor::give_bytes(std::string_view key, const void* data, std::size_t size) {
  if (size > max_story_message) fail(fmt::format("{} bytes are too many to give", size));
  const std::lock_guard lock(mutex_);
  tell({Op::give, {}, std::string(key), std::string(static_cast<const char*>(data), size)});
}

void Actor::exec(const std::vector<std::string>& command) {
  tell({Op::executes, {}, {}, {}});
  std::vector<char*> words;
  for (const std::string& word : command) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  std::cout.flush();
  std::fflush(nullptr);
  ::execvp(words[0], words.data());
  std::cerr << "cannot run " << words[0] << ": " << std::generic_category().message(errno) << "\n";
  ::_exit(127);
}

}  // namespace devshare::test
