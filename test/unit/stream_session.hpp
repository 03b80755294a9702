// SPDX-License-Identifier: Apache-2.0
// What tests of streams have in common: a stream that is held up until the test says so, page-locked host memory, and
// the threads of the process.
#pragma once

#include "host_session.hpp"

#include <devshare/acl/codes.hpp>
#include <devshare/instrument.hpp>

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <mutex>
#include <ostream>
#include <vector>

namespace devshare::test {

// A function that waits in a stream until it is opened.
class Gate {
 public:
  // Opens, and waits for whoever is in it: one that comes later finds no gate, so its stream is to be waited for.
  ~Gate() {
    open();
    std::unique_lock lock(mutex_);
    while (inside_) left_.wait(lock);
  }

  void hold_up(acl::aclrtStream stream) { code_ = host::launch(stream, &Gate::wait, this); }
  acl::aclError code() const { return code_; }
  void open() {
    const std::lock_guard lock(mutex_);
    open_ = true;
    opened_.notify_all();
  }
  void await_reached() {
    std::unique_lock lock(mutex_);
    while (!reached_) reached_now_.wait(lock);
  }

 private:
  static void wait(void* self) {
    Gate& gate = *static_cast<Gate*>(self);
    std::unique_lock lock(gate.mutex_);
    gate.reached_ = true;
    gate.inside_ = true;
    gate.reached_now_.notify_all();
    while (!gate.open_) gate.opened_.wait(lock);
    gate.inside_ = false;
    gate.left_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable opened_;
  std::condition_variable reached_now_;
  std::condition_variable left_;
  bool reached_ = false;
  bool inside_ = false;
  bool open_ = false;
  acl::aclError code_ = -1;
};

// Page-locked, so that copies do not wait.
class LockedBytes {
 public:
  explicit LockedBytes(std::size_t size, unsigned char value = 0) : size_(size) {
    void* memory = nullptr;
    if (host::table().aclrtMallocHost(&memory, size) != 0) return;
    bytes_ = static_cast<unsigned char*>(memory);
    std::memset(bytes_, value, size);
  }
  ~LockedBytes() { host::table().aclrtFreeHost(bytes_); }
  LockedBytes(const LockedBytes&) = delete;
  LockedBytes& operator=(const LockedBytes&) = delete;

  unsigned char* data() const { return bytes_; }
  std::size_t size() const { return size_; }
  unsigned char& operator[](std::size_t i) const { return bytes_[i]; }
  bool all(unsigned char value) const {
    for (std::size_t i = 0; i < size_; ++i) {
      if (bytes_[i] != value) return false;
    }
    return true;
  }

 private:
  unsigned char* bytes_ = nullptr;
  std::size_t size_ = 0;
};

// What a call came to, and why.
struct Refusal {
  acl::aclError code;
  host::Reason reason;
  bool operator==(const Refusal&) const = default;
};
inline std::ostream& operator<<(std::ostream& out, const Refusal& refusal) {
  return out << refusal.code << " for reason " << static_cast<int>(refusal.reason);
}
inline Refusal refused(acl::aclError code) { return {code, last_reason()}; }

inline constexpr Refusal null{acl::code::invalid_param, host::Reason::bad_argument};
inline constexpr Refusal bad{acl::code::rt_param_invalid, host::Reason::bad_argument};

// For host::launch: an argument that is an std::atomic<bool>.
inline void set_flag(void* flag) { static_cast<std::atomic<bool>*>(flag)->store(true); }

inline std::size_t threads_of_process() {
  const std::filesystem::directory_iterator tasks("/proc/self/task");
  return static_cast<std::size_t>(std::distance(begin(tasks), end(tasks)));
}

class StreamSession : public HostSession {
 public:
  using HostSession::HostSession;
  ~StreamSession() { host::clear(); }

  acl::aclrtStream stream() const {
    acl::aclrtStream made = nullptr;
    CHECK(acl.aclrtCreateStream(&made) == 0);
    return made;
  }
  acl::aclError to_device(void* to, const LockedBytes& from, acl::aclrtStream in) const {
    return acl.aclrtMemcpyAsync(to, from.size(), from.data(), from.size(), acl::memcpy_kind::host_to_device, in);
  }
  acl::aclError to_host(const LockedBytes& to, const void* from, acl::aclrtStream in) const {
    return acl.aclrtMemcpyAsync(to.data(), to.size(), from, to.size(), acl::memcpy_kind::device_to_host, in);
  }
  bool complete(acl::aclrtStream in) const {
    acl::aclrtStreamStatus status = -1;
    CHECK(acl.aclrtStreamQuery(in, &status) == 0);
    return status == acl::stream_status::complete;
  }
};

}  // namespace devshare::test
