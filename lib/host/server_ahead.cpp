// SPDX-License-Identifier: Apache-2.0
// What an exporter sends before it is asked. The kernel keeps it for the importer, with its bytes; how much of that there
// may be is bounded here, and whoever ends memory that nobody has taken is told so.
#include "channel.hpp"
#include "profile.hpp"
#include "server.hpp"

#include <linux/sockios.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <algorithm>

namespace devshare::host {
namespace {

constexpr std::size_t most_ahead = 8;  // unread by one importer

bool has_read_everything(int socket) noexcept {
  int unread = 0;
  return ::ioctl(socket, SIOCOUTQ, &unread) == 0 && unread == 0;
}

}  // namespace

// Unread by all. The kernel lets a user have as many descriptors on their way as one process may have, and refuses
// whoever comes then: an answer that was asked for, too, and that of another process.
std::size_t Server::most_ahead_of_all() noexcept {
  constexpr std::size_t most = 64;
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return most;
  return std::min<std::size_t>(most, limit.rlim_cur / 64);
}

void Server::forget_what_was_read(Connection& connection) {
  if (connection.ahead.empty() || !has_read_everything(connection.socket.get())) return;
  ahead_ -= connection.ahead.size();
  connection.ahead.clear();
}

void Server::send_ahead(const Answer& answer, const MemoryName& memory, const Whitelist& admitted) {
  const std::scoped_lock lock(mutex_);
  if (ahead_ == most_ahead_of_all_) {
    for (auto& [socket, connection] : connections_) forget_what_was_read(connection);
  }
  for (auto& [socket, connection] : connections_) {
    if (!connection.greeted || connection.server != profile().server) continue;
    if (admitted.judge(connection.peer, connection.claimed_pid) != Whitelist::Verdict::admitted) continue;
    if (connection.ahead.size() == most_ahead) forget_what_was_read(connection);
    if (connection.ahead.size() == most_ahead || ahead_ == most_ahead_of_all_) continue;
    if (send_message(socket, encode(answer.reply), answer.descriptor, MSG_DONTWAIT) != 0) continue;
    connection.ahead.push_back(memory);
    ++ahead_;
  }
}

bool Server::on_its_way(const MemoryName& memory) {
  const std::scoped_lock lock(mutex_);
  if (ahead_ == 0) return false;
  bool found = false;
  for (auto& [socket, connection] : connections_) {
    const std::vector<MemoryName>& ahead = connection.ahead;
    if (std::find(ahead.begin(), ahead.end(), memory) == ahead.end()) continue;
    forget_what_was_read(connection);
    found = found || !ahead.empty();
  }
  return found;
}

std::vector<MemoryName> Server::on_their_way() {
  const std::scoped_lock lock(mutex_);
  std::vector<MemoryName> all;
  for (auto& [socket, connection] : connections_) {
    forget_what_was_read(connection);
    all.insert(all.end(), connection.ahead.begin(), connection.ahead.end());
  }
  return all;
}

}  // namespace devshare::host
