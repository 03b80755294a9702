// SPDX-License-Identifier: Apache-2.0
// Another process of a measurement, and the line to it.
#pragma once

#include "way.hpp"

#include <sys/types.h>

#include <functional>
#include <type_traits>

namespace devshare::bench {

class Line {
 public:
  explicit Line(int socket = -1) noexcept : socket_(socket) {}

  template <class T>
  void send(const T& value) const {
    static_assert(std::is_trivially_copyable_v<T>);
    send_bytes(&value, sizeof(T));
  }
  template <class T>
  T receive() const {
    static_assert(std::is_trivially_copyable_v<T>);
    T value;
    receive_bytes(&value, sizeof(T));
    return value;
  }

 private:
  void send_bytes(const void* bytes, std::size_t size) const;
  void receive_bytes(void* bytes, std::size_t size) const;

  int socket_;
};

// A child that runs `body`. It is killed at the end of this object, wherever it is, and with its parent.
class Process {
 public:
  explicit Process(const std::function<void(const Line&)>& body);
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  const Line& line() const noexcept { return line_; }

 private:
  pid_t pid_ = -1;
  Line line_;
};

void pin_to(int processor);  // threads made later are pinned there too

}  // namespace devshare::bench
