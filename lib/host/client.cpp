// SPDX-License-Identifier: Apache-2.0
#include "client.hpp"

#include "asked_ahead.hpp"
#include "channel.hpp"
#include "client_connections.hpp"
#include "endpoint.hpp"
#include "peer_identity.hpp"
#include "profile.hpp"

#include <devshare/acl/codes.hpp>

#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <utility>
#include <vector>

namespace devshare::host {
namespace {

using detail::Reason;
using Clock = std::chrono::steady_clock;

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

// Memory that nobody has asked for yet, of the exporter that is spoken to.
bool is_sent_ahead(const std::optional<Reply>& reply, std::uint64_t endpoint) noexcept {
  return reply && reply->sequence == 0 && reply->code == 0 && reply->key.endpoint == endpoint &&
         (reply->op == Op::import_memory || reply->op == Op::import_handle);
}

// Whether what was sent ahead is what is asked for, of an exporter that lives, and as good as when it was sent.
bool still_answers(const Reply& reply, const Request& request, const ControlPageView& page) noexcept {
  if (reply.op != request.op || reply.key != request.key || reply.kind != request.kind) return false;
  const bool key = reply.op == Op::import_memory;
  if (key && request.key.slot >= most_keys) return false;  // of no page
  const std::uint32_t slot = request.key.slot;
  const ExporterWatch watch = key ? page.watch(slot, reply.watch, true) : page.token_watch(slot, reply.watch);
  return watch.death != nullptr && !watch.gone();
}

// More than an exporter of ours sends ahead.
constexpr int most_looks = 64;

// The answer, if the exporter has sent it already: memory that this process was admitted to while it was connected. What
// else was sent is dropped, as nobody knows whether it will be asked for; it can be had for the asking.
std::optional<Fetched> take_sent_ahead(Connection& connection, const Request& request) {
  const bool of_memory = request.op == Op::import_memory || request.op == Op::import_handle;
  for (int looked = 0; of_memory && looked < most_looks && connection.socket && connection.sends_ahead; ++looked) {
    ReplyBytes bytes;
    Received received = receive_message(connection.socket.get(), bytes, true, MSG_DONTWAIT);
    if (received.outcome == Received::Outcome::interrupted || received.outcome == Received::Outcome::descriptor_lost) {
      continue;
    }
    if (received.outcome == Received::Outcome::nothing) {
      connection.sends_ahead = false;
      break;
    }
    const std::optional<Reply> reply = decode_reply(std::span(bytes).first(received.size));
    if (received.outcome != Received::Outcome::message || !received.descriptor ||
        !is_sent_ahead(reply, request.key.endpoint)) {
      connection.socket = UniqueFd();  // the end of it, in whatever way
      break;
    }
    if (still_answers(*reply, request, *connection.page)) {
      return Fetched{*reply, std::move(received.descriptor), connection.page};
    }
  }
  return std::nullopt;
}

Exchange receive_reply(Connection& connection, const Request& request, Clock::time_point deadline) {
  Exchange result;
  ReplyBytes bytes;
  Received received;
  std::optional<Reply> reply;
  while (true) {
    received = wait_for_reply(connection.socket.get(), bytes, deadline);
    reply = decode_reply(std::span(bytes).first(received.size));
    if (!is_sent_ahead(reply, request.key.endpoint)) break;
    connection.sends_ahead = true;
    if (Clock::now() >= deadline) {  // nothing but such
      result.failed = Reason::timed_out;
      return result;
    }
  }
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

Request hello_to(std::uint64_t endpoint) noexcept {
  Request request;
  request.op = Op::hello;
  request.key.endpoint = endpoint;
  return request;
}

// Connects and says hello. Empty when done, else why not; a refusal by the exporter is in `reply`.
Exchange open_connection(Connection& connection, std::uint64_t endpoint, Clock::time_point deadline) {
  Exchange result;
  close_dead_connections();
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
  if (std::optional<Fetched> ahead = take_sent_ahead(connection, request)) return *std::move(ahead);
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
  const std::shared_ptr<Connection> connection = acquire_connection(endpoint, deadline);
  if (connection == nullptr) return refused(Reason::timed_out);
  Fetched fetched = talk(*connection, what, deadline);
  release_connection(endpoint, connection);
  return fetched;
}

std::size_t ask_exporter_of_several(std::span<const Request> what, std::span<std::optional<Fetched>> answers) {
  const std::uint64_t endpoint = what.front().key.endpoint;
  const auto deadline = Clock::now() + std::chrono::milliseconds(profile().exporter_deadline_ms);
  const std::shared_ptr<Connection> connection = acquire_connection(endpoint, deadline);
  if (connection == nullptr) return 0;
  if (!connection->socket) {
    const Exchange opened = open_connection(*connection, endpoint, deadline);
    if (opened.failed != Reason::none || opened.reply.code != 0) connection->socket = UniqueFd();
  }
  std::size_t answered = 0;
  for (; answered < what.size(); ++answered) {
    answers[answered] = take_sent_ahead(*connection, what[answered]);
    if (!answers[answered]) break;
  }
  what = what.subspan(answered);
  answers = answers.subspan(answered);
  std::vector<Request> sent(what.begin(), what.end());
  std::size_t asked = 0;
  while (connection->socket && asked < sent.size() && send_request(*connection, &sent[asked]) == 0) ++asked;
  // A connection with an answer on it that nobody takes is worth nothing any more.
  if (asked < sent.size()) connection->socket = UniqueFd();
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
  release_connection(endpoint, connection);
  return answered;
}

}  // namespace devshare::host
