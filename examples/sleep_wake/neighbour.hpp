// SPDX-License-Identifier: Apache-2.0
// The second process of this example: the same program, started anew at the other end of a socket. Started and not
// forked, because a forked child has no runtime (R4).
#pragma once

#include "common/rendezvous.hpp"

#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>

inline constexpr int neighbour_fd = 3;  // its end of the socket

class Neighbour {
 public:
  // Starts this program again, to use `device`.
  static Neighbour start(std::int32_t device, examples::Patience patience) {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0) examples::fail("cannot make a socket");
    examples::Socket ours(patience, ends[0]);
    const examples::Socket theirs(patience, ends[1]);

    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, theirs.fd(), neighbour_fd);
    std::string number = std::to_string(device);
    std::string name = "sleep_wake";
    std::string option = "--neighbour-on";
    char* arguments[] = {name.data(), option.data(), number.data(), nullptr};
    pid_t process = 0;
    const int failed = posix_spawn(&process, "/proc/self/exe", &actions, nullptr, arguments, environ);
    posix_spawn_file_actions_destroy(&actions);
    if (failed != 0) throw std::system_error(failed, std::generic_category(), "cannot start a neighbour");
    return Neighbour(process, std::move(ours));
  }
  Neighbour(Neighbour&& other) noexcept
      : process_(std::exchange(other.process_, -1)), connection_(std::exchange(other.connection_, std::nullopt)) {}
  Neighbour& operator=(Neighbour&&) = delete;
  ~Neighbour() {
    connection_.reset();  // so that it ends as well
    if (process_ > 0) waitpid(process_, nullptr, 0);
  }

  const examples::Socket& connection() const noexcept { return *connection_; }

  // Waits for its end, which must be a good one.
  void expect_good_end() {
    int status = 0;
    if (waitpid(std::exchange(process_, -1), &status, 0) < 0) examples::fail("the neighbour cannot be waited for");
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) throw std::runtime_error("the neighbour failed");
  }

 private:
  Neighbour(pid_t process, examples::Socket connection) : process_(process), connection_(std::move(connection)) {}

  pid_t process_;
  std::optional<examples::Socket> connection_;
};
