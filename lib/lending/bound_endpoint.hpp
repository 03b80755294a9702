// SPDX-License-Identifier: Apache-2.0
// A lender's side of an endpoint: the socket, and the names it goes by while it lives.
#pragma once

#include "socket.hpp"

#include <string>

namespace devshare::detail {

class BoundEndpoint {
 public:
  // Binds and listens, for this user only or for all; or takes over the descriptor it names.
  static Result<BoundEndpoint> bind(const Endpoint& endpoint, bool for_all_users) noexcept;

  BoundEndpoint() noexcept = default;
  BoundEndpoint(BoundEndpoint&&) noexcept = default;
  BoundEndpoint& operator=(BoundEndpoint&&) noexcept = default;
  ~BoundEndpoint() { close(); }

  // Closes the socket and removes what it made, and nothing else: a file of the same name that is another's stays.
  void close() noexcept;
  // In a forked child: closes, and removes nothing.
  void forget() noexcept;

  int fd() const noexcept { return socket_.get(); }
  // A single connection, not a socket that listens.
  bool connected() const noexcept { return connected_; }
  UniqueFd take_connection() noexcept { return std::move(socket_); }

 private:
  static Result<BoundEndpoint> take_over(int fd) noexcept;
  static Result<BoundEndpoint> bind_path(const Endpoint& endpoint, bool for_all_users) noexcept;
  Result<void> listen() noexcept;

  UniqueFd socket_;
  bool connected_ = false;
  UniqueFd directory_;   // of the path: it stays the right one, whatever is renamed or becomes current
  UniqueFd lock_;        // the file beside it, locked
  std::string name_;     // in the directory
  dev_t device_ = 0;     // of the socket file that is ours
  ino_t inode_ = 0;
};

}  // namespace devshare::detail
