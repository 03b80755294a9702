// SPDX-License-Identifier: Apache-2.0
// Where an exporting process listens: a SEQPACKET socket named after a random number of 40 bits, so few because a token
// of 64 bits must lead to it (token.hpp). They are a name and no secret: a number that is taken is drawn again.
//
// By default an abstract name, which vanishes with its process however that ends (B062) but does not reach across
// network namespaces. With DEVSHARE_HOST_SOCKET_DIR a path in that directory, which must be 0700 and the user's own; it
// is unlinked at exit, and what a killed process left is reclaimed by the next one that starts there (B072).
#pragma once

#include "unique_fd.hpp"

#include <chrono>
#include <cstdint>
#include <string>

namespace devshare::host {

inline constexpr unsigned endpoint_bits = 40;

// A listening socket and, for a path, the duty to unlink it: by close(), at exit, never from a forked child (B064).
class Endpoint {
 public:
  Endpoint() noexcept = default;
  Endpoint(const Endpoint&) = delete;
  Endpoint& operator=(const Endpoint&) = delete;
  ~Endpoint() { close(); }

  // Opens under a new random name. 0 or an errno: EACCES for a directory that is not ours alone, ENAMETOOLONG for one
  // whose path does not fit a socket name.
  int open(const std::string& directory);
  void close() noexcept;
  void close_descriptor() noexcept { socket_ = UniqueFd(); }  // in a forked child, which owns no name

  int socket() const noexcept { return socket_.get(); }
  std::uint64_t name() const noexcept { return name_; }

 private:
  int open_abstract(std::uint64_t name);
  int open_path(const std::string& directory, std::uint64_t name);

  UniqueFd socket_;
  std::uint64_t name_ = 0;
  std::string path_;  // empty for an abstract name
};

// A blocking socket for reaching an endpoint, with a time limit on every call made with it; empty, with errno set, when
// no descriptor is left.
UniqueFd new_client_socket(std::uint32_t time_limit_ms) noexcept;

// Connects within the socket's time limit, signals or not. 0 or an errno: ECONNREFUSED and ENOENT when nobody listens
// there, EAGAIN when nobody accepts in time.
int connect_to(int socket, std::uint64_t name, const std::string& directory,
               std::chrono::steady_clock::time_point deadline) noexcept;

}  // namespace devshare::host
