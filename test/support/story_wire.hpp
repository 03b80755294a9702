// SPDX-License-Identifier: Apache-2.0
// What actors and the supervisor of a story say to each other.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

namespace devshare::test::story {

enum class Op : std::uint32_t {
  // from an actor
  send,        // who, data
  receive,     // who; answered
  step,        // name; answered
  pause,       // who, name; answered
  pause_end,   // who; answered
  pid_of,      // who; answered
  checked,     // an expectation held
  failed,      // name: the text
  give,        // name, data
  executes,    // becomes another program
  abandoned,   // ends early, with its reason given as failed
  returned,    // has come to the end of its part
  // from the process that stands between the supervisor and an actor in a pid namespace
  born,        // number: the actor's process id
  // from the supervisor
  yes,         // number, data
  no,          // name: why it will never be
};

struct Frame {
  Op op{};
  std::string who;
  std::string name;
  std::string data;
  std::int32_t number = 0;
};

// One end of a socket pair. A frame is one message, whole or not at all.
class Channel {
 public:
  Channel() noexcept = default;
  explicit Channel(int fd) noexcept : fd_(fd) {}
  Channel(Channel&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Channel& operator=(Channel&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Channel() { close(); }

  static bool pair(Channel* one, Channel* other);  // close-on-exec both

  bool send(const Frame& frame) const;              // false when nobody listens any more
  bool receive(Frame* frame, bool wait) const;      // false at the end, or when nothing waits and `wait` is false
  int fd() const noexcept { return fd_; }
  void close() noexcept;

 private:
  int fd_ = -1;
};

}  // namespace devshare::test::story
