// SPDX-License-Identifier: Apache-2.0
// The dispatcher: the endpoint, and connections that have not introduced themselves.
#include "dispatcher.hpp"
#include "remote_error.hpp"

#include <algorithm>
#include <cerrno>
#include <utility>

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/timerfd.h>

namespace devshare::detail {
namespace {

// Room for so many.
constexpr std::size_t most_strangers = 256;
constexpr std::size_t few_strangers = 16;  // for these there always is

// A quarter of the descriptors at most: the rest is for those who speak, and for what the runtime does for them.
std::size_t room_for_strangers() noexcept {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return most_strangers;
  return static_cast<std::size_t>(std::min<rlim_t>(limit.rlim_cur / 4, most_strangers));
}

// There is no descriptor for it. The first word to it, and the last.
void say_no_room(int socket) noexcept {
  Message message;
  message.type = MessageType::refused;
  message.error = to_message(Error(Errc::fd_limit, Operation::serve));
  (void)send_introduction(socket, encode(message).bytes());
}

// The connection that has been silent longest, other than one that is about to speak; null when all have spoken.
Connection* oldest_stranger(LenderCore& core, const Connection* but = nullptr) noexcept {
  Connection* oldest = nullptr;
  for (auto& [id, connection] : core.connections) {
    if (!connection->stranger || connection.get() == but) continue;
    if (oldest == nullptr || connection->since < oldest->since) oldest = connection.get();
  }
  return oldest;
}

Connection* add_connection(LenderCore& core, UniqueFd&& socket, bool stranger) noexcept {
  ask_who_sends(socket.get());
  const Locked lock = lock_lending();
  if (stranger && core.strangers >= few_strangers && core.strangers >= room_for_strangers()) {
    end_connection(core, *oldest_stranger(core));
  }
  auto connection = std::make_unique<Connection>();
  connection->id = core.next_connection++;
  connection->since = monotonic_now();
  if (!add_watch(core, socket.get(), connection->id)) return nullptr;
  connection->socket = std::move(socket);
  Connection* const added = connection.get();
  core.connections.emplace(added->id, std::move(connection));
  added->stranger = stranger;
  if (stranger) ++core.strangers;
  set_timer(core);
  return added;
}

// There is no descriptor to accept with: one is given up for as long as it takes to say so.
void turn_away(LenderCore& core) noexcept {
  core.reserve = {};
  const UniqueFd socket(::accept4(core.endpoint.fd(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (socket) say_no_room(socket.get());
}

}  // namespace

void set_timer(LenderCore& core, std::int64_t time) noexcept {
  const bool needed = core.strangers != 0 || (!core.accepting && !core.closed && core.endpoint.fd() >= 0);
  if (core.timer_armed == needed) return;
  itimerspec in{};
  if (needed) in.it_value = {time / 1'000'000'000, time % 1'000'000'000};
  if (::timerfd_settime(core.timer.get(), 0, &in, nullptr) == 0) core.timer_armed = needed;
}

bool make_room(LenderCore& core, const Connection* but) noexcept {
  constexpr int at_once = 8;
  const Locked lock = lock_lending();
  bool any = false;
  for (int i = 0; i < at_once; ++i) {
    Connection* const stranger = oldest_stranger(core, but);
    if (stranger == nullptr) break;
    say_no_room(stranger->socket.get());  // it may have been about to speak
    end_connection(core, *stranger);
    any = true;
  }
  return any;
}

void no_stranger_any_more(LenderCore& core, Connection& connection) noexcept {
  if (std::exchange(connection.stranger, false)) --core.strangers;
}

void accept_all(LenderCore& core) noexcept {
  for (std::size_t i = 0; i < events_at_once; ++i) {
    UniqueFd socket(::accept4(core.endpoint.fd(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!socket) {
      if (errno != EMFILE && errno != ENFILE) return;
      if (make_room(core)) continue;
      turn_away(core);
      core.reserve = UniqueFd(::open("/dev/null", O_RDONLY | O_CLOEXEC));
      if (core.reserve) return;
      // Not even that: look again when the timer says so, instead of turning round and round here.
      (void)::epoll_ctl(core.epoll.get(), EPOLL_CTL_DEL, core.endpoint.fd(), nullptr);
      const Locked lock = lock_lending();
      core.accepting = false;
      set_timer(core);
      return;
    }
    if (Connection* const added = add_connection(core, std::move(socket), true); added != nullptr) (void)receive(core, *added);
  }
}

void time_has_come(LenderCore& core) noexcept {
  drain(core.timer.get());
  const Locked lock = lock_lending();
  const std::int64_t now = monotonic_now();
  std::int64_t next = introduction_time;
  for (auto& [id, connection] : core.connections) {
    if (!connection->stranger) continue;
    const std::int64_t left = connection->since + introduction_time - now;
    if (left <= 0) {
      end_connection(core, *connection);
    } else {
      next = std::min(next, left);
    }
  }
  if (!core.accepting && !core.closed && core.endpoint.fd() >= 0) {
    if (!core.reserve) core.reserve = UniqueFd(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    core.accepting = add_watch(core, core.endpoint.fd(), about_endpoint);
  }
  core.timer_armed = false;  // only now: ending a connection would have set it, for all others from the start again
  set_timer(core, next);
}

// The end of the endpoint. Leases stay, and the connections that have them; those who wait for an offer are told that
// there will be none.
void close_if_asked(LenderCore& core) noexcept {
  const Locked lock = lock_lending();
  if (!core.closing || core.closed) return;
  if (core.accepting) (void)::epoll_ctl(core.epoll.get(), EPOLL_CTL_DEL, core.endpoint.fd(), nullptr);
  core.accepting = false;
  core.endpoint.close();
  for (auto& [id, connection] : core.connections) {
    if (connection->leases.empty() && connection->waiting.empty()) end_connection(core, *connection);
  }
  core.closed = true;
}

bool watch_endpoint(LenderCore& core) noexcept {
  if (!add_watch(core, core.wake.get(), about_wake) || !add_watch(core, core.timer.get(), about_timer)) return false;
  // Whoever has the other end was given it, and may take its time.
  if (core.endpoint.connected()) return add_connection(core, core.endpoint.take_connection(), false) != nullptr;
  core.accepting = add_watch(core, core.endpoint.fd(), about_endpoint);
  return core.accepting;
}

}  // namespace devshare::detail
