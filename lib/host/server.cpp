// SPDX-License-Identifier: Apache-2.0
#include "server.hpp"

#include "channel.hpp"
#include "signals_blocked.hpp"

#include <devshare/acl/codes.hpp>

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

namespace devshare::host {
namespace {

using detail::Reason;

std::size_t connection_limit() noexcept {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return most_connections;
  return std::min<std::size_t>(most_connections, std::max<std::size_t>(1, limit.rlim_cur / 4));
}

Reply refusal(Op op, std::uint32_t sequence, Reason reason, std::uint64_t available = 0) noexcept {
  Reply reply;
  reply.op = op;
  reply.sequence = sequence;
  reply.code = acl::code::rt_drv_internal;
  reply.reason = reason;
  reply.needed = available;
  reply.available = available;
  return reply;
}

int send_reply(int socket, const Reply& reply, int descriptor) noexcept {
  return send_message(socket, encode(reply), descriptor, MSG_DONTWAIT);
}

// Sent to a newcomer before it has asked anything: number 0 answers no request, and the connection is closed.
void turn_away(int socket, Reason reason, std::uint64_t available) noexcept {
  static_cast<void>(send_reply(socket, refusal(Op::hello, 0, reason, available), -1));
}

}  // namespace

int Server::start(int listener, Answerer& answerer, std::unique_ptr<Server>* out) {
  std::unique_ptr<Server> server(new Server(listener, answerer));
  if (const int error = server->open(); error != 0) return error;
  *out = std::move(server);
  return 0;
}

int Server::open() {
  epoll_ = UniqueFd(::epoll_create1(EPOLL_CLOEXEC));
  if (!epoll_) return errno;
  wake_ = UniqueFd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake_) return errno;
  spare_ = UniqueFd(::fcntl(wake_.get(), F_DUPFD_CLOEXEC, 0));
  if (!spare_) return errno;
  // Edge-triggered: a newcomer for whom there is no descriptor must not keep the thread spinning.
  if (!watch(listener_, EPOLLIN | EPOLLET) || !watch(wake_.get(), EPOLLIN)) return errno;
  const AllSignalsBlocked blocked;
  const int error = ::pthread_create(&thread_, nullptr, &Server::thread_main, this);
  running_ = error == 0;
  return error;
}

Server::~Server() {
  if (!running_) return;
  const std::uint64_t one = 1;
  while (::write(wake_.get(), &one, sizeof one) < 0 && errno == EINTR) {
  }
  ::pthread_join(thread_, nullptr);
}

void Server::close_descriptors() noexcept {
  for (auto& [socket, connection] : connections_) connection.socket = UniqueFd();
  epoll_ = UniqueFd();
  wake_ = UniqueFd();
  spare_ = UniqueFd();
}

bool Server::watch(int descriptor, std::uint32_t events) noexcept {
  epoll_event event{};
  event.events = events;
  event.data.fd = descriptor;
  return ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, descriptor, &event) == 0;
}

void* Server::thread_main(void* server) {
  ::pthread_setname_np(::pthread_self(), "devshare-serve");
  static_cast<Server*>(server)->run();
  return nullptr;
}

void Server::run() {
  answerer_.service_begins();
  bool stopping = false;
  while (!stopping) {
    std::array<epoll_event, 32> events;
    const int count = ::epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), -1);
    for (int i = 0; i < count; ++i) {
      const int ready = events[static_cast<std::size_t>(i)].data.fd;
      if (ready == wake_.get()) {
        stopping = true;
      } else if (ready == listener_) {
        accept_all();
      } else if (const auto found = connections_.find(ready); found != connections_.end()) {
        if (!serve(ready, found->second.peer)) drop(ready);
      }
    }
    if (stalled_) accept_all();
  }
  answerer_.service_ends();
}

void Server::accept_all() {
  stalled_ = false;
  while (true) {
    int socket = -1;
    bool table_full = false;
    {
      const std::scoped_lock lock(mutex_);
      socket = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
      table_full = socket < 0 && (errno == EMFILE || errno == ENFILE);
      if (table_full) socket = accept_into_spare();
      if (socket >= 0) connections_[socket].socket = UniqueFd(socket);
      connection_count_ = connections_.size();
      if (socket < 0 && !table_full && (errno == EINTR || errno == ECONNABORTED)) continue;
    }
    if (socket < 0) {
      stalled_ = table_full && connection_count_ != 0;  // tried again whenever there is something to do
      return;
    }
    if (table_full || connection_count_ > connection_limit()) {
      turn_away(socket, Reason::descriptor_limit, connection_limit());
      drop(socket);
    } else {
      greet(socket);
    }
  }
}

int Server::accept_into_spare() {
  if (!spare_) return -1;
  spare_ = UniqueFd();
  return ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
}

void Server::greet(int socket) {
  const std::optional<Peer> peer = identify_peer(socket);
  if (!peer) {
    turn_away(socket, Reason::descriptor_limit, connection_limit());
    return drop(socket);
  }
  if (peer->uid != ::geteuid()) {  // other users are on another machine
    turn_away(socket, Reason::user_refused, 0);
    return drop(socket);
  }
  {
    const std::scoped_lock lock(mutex_);
    connections_[socket].peer = *peer;
  }
  if (!watch(socket, EPOLLIN)) drop(socket);
}

bool Server::serve(int socket, const Peer& peer) {
  RequestBytes bytes;
  const Received received = receive_message(socket, bytes, false, MSG_DONTWAIT);
  if (received.outcome == Received::Outcome::nothing || received.outcome == Received::Outcome::interrupted) return true;
  if (received.outcome != Received::Outcome::message) return false;
  const std::optional<Request> request = decode_request(std::span(bytes).first(received.size));
  if (!request) return false;

  const Answer answer = answerer_.answer(*request, peer);
  note_request(socket);
  int error = send_reply(socket, answer.reply, answer.descriptor);
  if (error == ETOOMANYREFS) {  // too many descriptors of this user are on their way
    error = send_reply(socket, refusal(request->op, request->sequence, Reason::descriptor_limit), -1);
  }
  if (error == 0 && request->op == Op::hello) remember_hello(socket, *request);
  return error == 0;  // a full queue included: who does not read is dropped
}

void Server::remember_hello(int socket, const Request& hello) {
  const std::scoped_lock lock(mutex_);
  Connection& connection = connections_[socket];
  connection.greeted = true;
  connection.ahead.reserve(most_ahead);
  connection.claimed_pid = hello.bare_pid;
  connection.server = hello.server;
}

void Server::drop(int socket) {
  const std::scoped_lock lock(mutex_);
  const auto found = connections_.find(socket);
  if (found == connections_.end()) return;
  forget_first(found->second, found->second.ahead.size());
  connections_.erase(found);
  connection_count_ = connections_.size();
  if (!spare_) spare_ = UniqueFd(::fcntl(wake_.get(), F_DUPFD_CLOEXEC, 0));
}

}  // namespace devshare::host
