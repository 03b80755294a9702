// SPDX-License-Identifier: Apache-2.0
#include "client.hpp"

#include "asked_ahead.hpp"
#include "block.hpp"
#include "channel.hpp"
#include "endpoint.hpp"
#include "fork.hpp"
#include "peer_identity.hpp"
#include "per_process.hpp"
#include "profile.hpp"

#include <devshare/acl/codes.hpp>

#include <poll.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <unordered_map>
#include <utility>
#include <vector>

namespace devshare::host {
namespace {

using detail::Reason;
using Clock = std::chrono::steady_clock;

// One exporting process. Used by one thread at a time: `busy` is that, and not a lock, because a thread may be in it
// for as long as the deadline, and fork waits for locks.
struct Connection {
  UniqueFd socket;
  std::uint32_t sequence = 0;
  std::shared_ptr<const ControlPageView> page;
  bool busy = false;
};

struct Connections : ProcessState<Connections> {
  std::unordered_map<std::uint64_t, std::shared_ptr<Connection>> by_endpoint;
  std::condition_variable one_is_free;

  void close_inherited() noexcept {
    for (auto& [endpoint, connection] : by_endpoint) connection->socket = UniqueFd();
  }
};

PerProcess<Connections> connections;

Reply local_refusal(Reason reason) {
  Reply reply;
  reply.code = reason == Reason::descriptor_limit ? acl::code::rt_memory_allocation : acl::code::rt_drv_internal;
  reply.reason = reason;
  if (reason == Reason::descriptor_limit) {
    rlimit limit{};
    ::getrlimit(RLIMIT_NOFILE, &limit);
    reply.needed = reply.available = limit.rlim_cur;
  }
  return reply;
}

Fetched refused(Reason reason) { return {local_refusal(reason), UniqueFd(), nullptr}; }

Reason reason_of_errno(int error) noexcept {
  switch (error) {
    case EMFILE:
    case ENFILE:
      return Reason::descriptor_limit;
    case EAGAIN:
      return Reason::timed_out;
    default:
      return Reason::exporter_gone;  // nobody listens, or no longer
  }
}

// The connection to an endpoint, for this thread alone; null when another thread kept it beyond the deadline.
std::shared_ptr<Connection> acquire(std::uint64_t endpoint, Clock::time_point deadline) {
  Connections& all = connections.get();
  std::unique_lock lock(all.mutex);
  while (true) {
    std::shared_ptr<Connection>& found = all.by_endpoint[endpoint];
    if (found == nullptr) found = std::make_shared<Connection>();
    if (!found->busy) {
      found->busy = true;
      return found;
    }
    if (all.one_is_free.wait_until(lock, deadline) == std::cv_status::timeout) return nullptr;
  }
}

void release(std::uint64_t endpoint, const std::shared_ptr<Connection>& connection) {
  Connections& all = connections.get();
  {
    const std::scoped_lock lock(all.mutex);
    connection->busy = false;
    if (!connection->socket) all.by_endpoint.erase(endpoint);
  }
  all.one_is_free.notify_all();
}

// Connections whose exporter has ended, or only one idle connection when `any` is asked for. The count of those closed.
std::size_t close_idle_connections(bool any) {
  Connections& all = connections.get();
  const std::scoped_lock lock(all.mutex);
  std::vector<pollfd> idle;
  std::vector<std::uint64_t> endpoints;
  for (const auto& [endpoint, connection] : all.by_endpoint) {
    if (connection->busy) continue;
    idle.push_back({connection->socket.get(), POLLIN, 0});
    endpoints.push_back(endpoint);
  }
  if (idle.empty()) return 0;
  std::size_t closed = 0;
  if (!any && ::poll(idle.data(), idle.size(), 0) <= 0) return 0;
  for (std::size_t i = 0; i < idle.size() && !(any && closed == 1); ++i) {
    if (any || idle[i].revents != 0) closed += all.by_endpoint.erase(endpoints[i]);  // nothing is ever sent unasked
  }
  return closed;
}

// When the descriptor table is full: gives up what can be had again, cheapest first.
bool free_a_descriptor() {
  return close_idle_connections(false) != 0 || release_cold_descriptor() || close_idle_connections(true) != 0;
}

struct Exchange {
  Reason failed = Reason::none;
  bool dead = false;  // the connection had ended; another may work
  Reply reply;
  UniqueFd descriptor;
};

// Waits for a reply until the deadline. The time limit of the socket counts from now; where time has gone by already,
// poll keeps the promise.
Received wait_for_reply(int socket, ReplyBytes& bytes, Clock::time_point deadline) {
  const auto limit = std::chrono::milliseconds(profile().exporter_deadline_ms);
  while (true) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now());
    if (left + std::chrono::milliseconds(10) < limit) {
      pollfd waiting{socket, POLLIN, 0};
      const int ready = ::poll(&waiting, 1, std::max(0, static_cast<int>(left.count())));
      if (ready == 0 || (ready < 0 && left.count() <= 0)) {
        Received late;
        late.outcome = Received::Outcome::nothing;
        return late;
      }
      if (ready < 0) continue;
    }
    Received received = receive_message(socket, bytes, true, 0);
    if (received.outcome != Received::Outcome::interrupted) return received;
  }
}

// Sends a request, with its number in it. 0, or why it could not be sent; after most errors there may still be a word from
// the exporter that closed.
int send_request(Connection& connection, Request* request) {
  if (++connection.sequence == 0) ++connection.sequence;  // 0 is what an exporter says unasked
  request->sequence = connection.sequence;
  request->bare_pid = bare_pid();
  request->server = profile().server;
  return send_message(connection.socket.get(), encode(*request), -1, 0);
}

Exchange receive_reply(const Connection& connection, const Request& request, Clock::time_point deadline) {
  Exchange result;
  ReplyBytes bytes;
  Received received = wait_for_reply(connection.socket.get(), bytes, deadline);
  switch (received.outcome) {
    case Received::Outcome::message:
    case Received::Outcome::descriptor_lost:
      break;
    case Received::Outcome::nothing:
    case Received::Outcome::interrupted:
      result.failed = Reason::timed_out;
      return result;
    case Received::Outcome::intruder:
      result.failed = Reason::protocol;
      return result;
    case Received::Outcome::closed:
      result.failed = Reason::exporter_gone;
      result.dead = true;
      return result;
  }
  const bool lost = received.outcome == Received::Outcome::descriptor_lost;
  const std::optional<Reply> reply = decode_reply(std::span(bytes).first(received.size));
  const bool unasked = reply && reply->sequence == 0 && reply->code != 0;
  const bool answers = reply && reply->sequence == request.sequence && reply->op == request.op;
  const bool carries = received.descriptor || lost;
  if (!(unasked || answers) || carries != (reply->code == 0 && brings_descriptor(request.op))) {
    result.failed = Reason::protocol;
    return result;
  }
  if (lost) {
    result.failed = Reason::descriptor_limit;
    return result;
  }
  result.reply = *reply;
  result.descriptor = std::move(received.descriptor);
  return result;
}

Exchange exchange(Connection& connection, Request request, Clock::time_point deadline) {
  if (send_request(connection, &request) == EAGAIN) {
    Exchange result;
    result.failed = Reason::timed_out;
    return result;
  }
  return receive_reply(connection, request, deadline);
}

// Sends a request, and again for as long as descriptors for its answer can be found.
Exchange exchange_with_room(Connection& connection, const Request& request, Clock::time_point deadline) {
  while (true) {
    Exchange result = exchange(connection, request, deadline);
    if (result.failed != Reason::descriptor_limit || !free_a_descriptor()) return result;
  }
}

// The socket belongs to its connection from birth and under the lock, so that fork finds it.
int give_socket(Connection& connection) {
  Connections& all = connections.get();
  const std::scoped_lock lock(all.mutex);
  connection.socket = new_client_socket(profile().exporter_deadline_ms);
  return connection.socket ? 0 : errno;
}

Request hello_to(std::uint64_t endpoint) noexcept {
  Request request;
  request.op = Op::hello;
  request.key.endpoint = endpoint;
  return request;
}

// Connects and says hello. Empty when done, else why not; a refusal by the exporter is in `reply`.
Exchange open_connection(Connection& connection, std::uint64_t endpoint, Clock::time_point deadline) {
  Exchange result;
  static_cast<void>(close_idle_connections(false));
  while (const int error = give_socket(connection)) {
    result.failed = reason_of_errno(error);
    if (result.failed != Reason::descriptor_limit || !free_a_descriptor()) return result;
    result.failed = Reason::none;
  }
  if (const int error = connect_to(connection.socket.get(), endpoint, profile().socket_directory, deadline);
      error != 0) {
    result.failed = reason_of_errno(error);
    return result;
  }
  if (peer_user(connection.socket.get()) != ::geteuid()) {  // a stranger under the exporter's name
    result.failed = Reason::user_refused;
    return result;
  }
  result = exchange_with_room(connection, hello_to(endpoint), deadline);
  if (result.failed != Reason::none || result.reply.code != 0) return result;
  connection.page = ControlPageView::map(result.descriptor, result.reply.watch);
  if (connection.page == nullptr) result.failed = Reason::protocol;
  return result;
}

Fetched talk(Connection& connection, const Request& request, Clock::time_point deadline) {
  bool kept = static_cast<bool>(connection.socket);
  while (true) {
    if (!connection.socket) {
      Exchange opened = open_connection(connection, request.key.endpoint, deadline);
      if (opened.failed != Reason::none || opened.reply.code != 0) {
        connection.socket = UniqueFd();
        return opened.failed != Reason::none ? refused(opened.failed) : Fetched{opened.reply, UniqueFd(), nullptr};
      }
    }
    Exchange result = exchange_with_room(connection, request, deadline);
    if (result.failed == Reason::none) return {result.reply, std::move(result.descriptor), connection.page};
    if (result.failed == Reason::descriptor_limit) return refused(result.failed);  // the connection is as good as ever
    connection.socket = UniqueFd();
    if (!result.dead || !kept) return refused(result.failed);
    kept = false;  // it may have been dropped by an exporter that lives: once more, from the start
  }
}

}  // namespace

Fetched ask_exporter(const Request& what) {
  if (std::optional<Fetched> known = take_answer(what)) return *std::move(known);
  const std::uint64_t endpoint = what.key.endpoint;
  const auto deadline = Clock::now() + std::chrono::milliseconds(profile().exporter_deadline_ms);
  const std::shared_ptr<Connection> connection = acquire(endpoint, deadline);
  if (connection == nullptr) return refused(Reason::timed_out);
  Fetched fetched = talk(*connection, what, deadline);
  release(endpoint, connection);
  return fetched;
}

std::size_t ask_exporter_of_several(std::span<const Request> what, std::span<std::optional<Fetched>> answers) {
  const std::uint64_t endpoint = what.front().key.endpoint;
  const auto deadline = Clock::now() + std::chrono::milliseconds(profile().exporter_deadline_ms);
  const std::shared_ptr<Connection> connection = acquire(endpoint, deadline);
  if (connection == nullptr) return 0;
  if (!connection->socket) {
    const Exchange opened = open_connection(*connection, endpoint, deadline);
    if (opened.failed != Reason::none || opened.reply.code != 0) connection->socket = UniqueFd();
  }
  std::vector<Request> sent(what.begin(), what.end());
  std::size_t asked = 0;
  while (connection->socket && asked < sent.size() && send_request(*connection, &sent[asked]) == 0) ++asked;
  // A connection with an answer on it that nobody takes is worth nothing any more.
  if (asked < sent.size()) connection->socket = UniqueFd();
  std::size_t answered = 0;
  for (std::size_t i = 0; i < asked && connection->socket; ++i) {
    Exchange result = receive_reply(*connection, sent[i], deadline);
    if (result.failed == Reason::descriptor_limit) continue;
    if (result.failed != Reason::none) {
      connection->socket = UniqueFd();
    } else if (result.reply.code == 0) {
      answers[i] = Fetched{result.reply, std::move(result.descriptor), connection->page};
      ++answered;
    }
  }
  release(endpoint, connection);
  return answered;
}

std::size_t client_connections() {
  Connections* all = connections.existing();
  if (all == nullptr) return 0;
  const std::scoped_lock lock(all->mutex);
  return all->by_endpoint.size();
}

void client_shut_down() {
  Connections* all = connections.existing();
  if (all == nullptr) return;
  const std::scoped_lock lock(all->mutex);
  all->by_endpoint.clear();  // no call is in flight
}

void client_before_fork() { connections.before_fork(); }
void client_after_fork_in_parent() { connections.after_fork_in_parent(); }
void client_after_fork_in_child() { connections.after_fork_in_child(); }

}  // namespace devshare::host
