// SPDX-License-Identifier: Apache-2.0
// How two programs find each other and pass messages: a Unix socket, one record a message. Nothing here knows of
// devshare. What goes wrong is thrown as a std::runtime_error or a std::system_error, which is one.
#pragma once

#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <optional>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <type_traits>
#include <utility>

namespace examples {

using Patience = std::chrono::seconds;  // how long to wait for the other side, each time

[[noreturn]] inline void fail(const std::string& what) {
  throw std::system_error(errno, std::generic_category(), what);
}

class Socket {
 public:
  explicit Socket(Patience patience, int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0)) : fd_(fd) {
    const timeval time = {.tv_sec = patience.count(), .tv_usec = 0};
    if (setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &time, sizeof time) < 0) fail("cannot make a socket");
  }
  Socket(Socket&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Socket& operator=(Socket&&) = delete;
  ~Socket() {
    if (fd_ >= 0) close(fd_);
  }
  int fd() const noexcept { return fd_; }

  // Calls bind or connect with the address that `path` is.
  int at(const std::string& path, int (*call)(int, const sockaddr*, socklen_t)) const {
    sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = {}};
    if (path.size() >= sizeof address.sun_path) throw std::runtime_error("too long for the path of a socket: " + path);
    path.copy(address.sun_path, path.size());
    return call(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof address);
  }

  template <class Message>
  void send(const Message& message) const {
    static_assert(std::is_trivially_copyable_v<Message>);
    if (::send(fd_, &message, sizeof message, MSG_NOSIGNAL) < 0) lost();
  }
  template <class Message>
  Message receive() const {
    static_assert(std::is_trivially_copyable_v<Message>);
    Message message;
    const ssize_t size = recv(fd_, &message, sizeof message, MSG_TRUNC);  // the whole length, were it more than fits
    if (size < 0) lost();
    if (size == 0) throw std::runtime_error("the other side hung up");
    if (size != sizeof message) throw std::runtime_error("the other side speaks another language");
    return message;
  }

 private:
  [[noreturn]] static void lost() {
    if (errno == EAGAIN) throw std::runtime_error("the other side did not answer in time");
    if (errno == EPIPE || errno == ECONNRESET) throw std::runtime_error("the other side hung up");
    fail("the connection broke");
  }

  int fd_;
};

class Listener {
 public:
  Listener(std::string path, Patience patience) : path_(std::move(path)), patience_(patience), socket_(patience) {
    if (socket_.at(path_, bind) < 0) fail(path_);  // in use: by an exporter that runs, or left by one that was killed
    if (listen(socket_.fd(), SOMAXCONN) < 0) fail(path_);
  }
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;
  ~Listener() { unlink(path_.c_str()); }

  // The next to come; none when nobody did in time.
  std::optional<Socket> accept() const {
    const int fd = accept4(socket_.fd(), nullptr, nullptr, SOCK_CLOEXEC);
    if (fd < 0 && errno == EAGAIN) return std::nullopt;
    if (fd < 0) fail(path_);
    return Socket(patience_, fd);
  }

 private:
  std::string path_;
  Patience patience_;
  Socket socket_;
};

// Connects to whoever listens at `path`, and waits for that to happen.
inline Socket connect_to(const std::string& path, Patience patience) {
  Socket socket(patience);
  const auto deadline = std::chrono::steady_clock::now() + patience;
  while (socket.at(path, connect) < 0) {
    if (errno != ENOENT && errno != ECONNREFUSED) fail(path);
    if (std::chrono::steady_clock::now() > deadline) throw std::runtime_error("nobody listens at " + path);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  return socket;
}

}  // namespace examples
