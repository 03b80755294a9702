// SPDX-License-Identifier: Apache-2.0
// What an exporter sends before it is asked. The kernel keeps it for the importer, with its bytes; how much of that there
// may be is bounded here, and whoever ends memory that nobody has taken is told so.
//
// How many messages an importer has not read the kernel says in bytes. They are read in order, so it is the last ones. If
// an answer is one of them, an entry too many counts as unread: one that its reader has dropped, waiting for the answer.
#include "channel.hpp"
#include "profile.hpp"
#include "server.hpp"

#include <linux/sockios.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>

namespace devshare::host {
namespace {

// What is sent and not read, as the kernel counts it; 0 when it does not say.
std::size_t unread_bytes(int socket) noexcept {
  int unread = 0;
  return ::ioctl(socket, SIOCOUTQ, &unread) == 0 ? static_cast<std::size_t>(unread) : 0;
}

}  // namespace

// What the kernel counts for one reply.
std::size_t Server::measure_message() noexcept {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) return 0;
  const UniqueFd sender(ends[0]);
  const UniqueFd receiver(ends[1]);
  const ReplyBytes bytes{};
  return send_message(sender.get(), bytes, -1, MSG_DONTWAIT) == 0 ? unread_bytes(sender.get()) : 0;
}

// Unread by all. The kernel lets a user have as many descriptors on their way as one process may have, and refuses
// whoever comes then: an answer that was asked for, too, and that of another process.
std::size_t Server::most_ahead_of_all() noexcept {
  constexpr std::size_t most = 64;
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return most;
  return std::min<std::size_t>(most, limit.rlim_cur / 64);
}

void Server::forget_first(Connection& connection, std::size_t count) {
  const auto end = connection.ahead.begin() + static_cast<std::ptrdiff_t>(count);
  for (auto read = connection.ahead.begin(); read != end; ++read) {
    const auto found = given_.find(*read);
    if (found == given_.end()) continue;  // it has ended
    --found->second.unread;
    found->second.taken = true;
  }
  connection.ahead.erase(connection.ahead.begin(), end);
  ahead_ -= count;
}

void Server::forget_what_was_read(Connection& connection) {
  if (connection.ahead.empty()) return;
  const std::size_t unread = unread_bytes(connection.socket.get()) / message_bytes_;
  if (unread < connection.ahead.size()) forget_first(connection, connection.ahead.size() - unread);
}

// Who asks reads all that was sent before the answer.
void Server::note_request(int socket) {
  const std::scoped_lock lock(mutex_);
  Connection& connection = connections_[socket];
  forget_first(connection, connection.ahead.size());
}

void Server::memory_taken(const MemoryName& memory) {
  const std::scoped_lock lock(mutex_);
  given_[memory].taken = true;
}

void Server::send_ahead(const Answer& answer, const Whitelist& admitted) {
  const std::scoped_lock lock(mutex_);
  if (message_bytes_ == 0) return;
  if (ahead_ == most_ahead_of_all_) {
    for (auto& [socket, connection] : connections_) forget_what_was_read(connection);
  }
  Given& given = given_[answer.name];
  for (auto& [socket, connection] : connections_) {
    if (!connection.greeted || connection.server != profile().server) continue;
    if (admitted.judge(connection.peer, connection.claimed_pid) != Whitelist::Verdict::admitted) continue;
    if (connection.ahead.size() == most_ahead) forget_what_was_read(connection);
    if (connection.ahead.size() == most_ahead || ahead_ == most_ahead_of_all_) continue;
    const int error = send_message(socket, encode(answer.reply), answer.descriptor, MSG_DONTWAIT);
    if (error == ETOOMANYREFS) return;
    if (error != 0) continue;
    connection.ahead.push_back(answer.name);  // has room
    ++given.unread;
    ++ahead_;
  }
}

bool Server::only_on_its_way(const MemoryName& memory) {
  const std::scoped_lock lock(mutex_);
  const auto found = given_.find(memory);
  if (found == given_.end()) return false;
  if (found->second.unread != 0 && !found->second.taken) {
    for (auto& [socket, connection] : connections_) forget_what_was_read(connection);
  }
  const Given given = found->second;
  given_.erase(found);
  return given.unread != 0 && !given.taken;
}

std::vector<MemoryName> Server::all_only_on_their_way() {
  const std::scoped_lock lock(mutex_);
  for (auto& [socket, connection] : connections_) forget_what_was_read(connection);
  std::vector<MemoryName> all;
  for (const auto& [memory, given] : given_) {
    if (given.unread != 0 && !given.taken) all.push_back(memory);
  }
  return all;
}

}  // namespace devshare::host
