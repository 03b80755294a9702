// SPDX-License-Identifier: Apache-2.0
// The dispatcher: connections that come, introduce themselves and end, and the ends of processes.
#include "lender_core.hpp"
#include "remote_error.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/timerfd.h>
#include <unistd.h>

namespace devshare::detail {
namespace {

// What an event of epoll is about: a connection by its number, its process by the same with the highest bit, and three
// that are no connection.
constexpr std::uint64_t about_process = std::uint64_t{1} << 63;
constexpr std::uint64_t about_endpoint = about_process - 1;
constexpr std::uint64_t about_wake = about_process - 2;
constexpr std::uint64_t about_timer = about_process - 3;

// A connection says who it is at once; whoever does not is given this long, and room for this many.
constexpr std::int64_t introduction_time = 5'000'000'000;
constexpr std::size_t most_strangers = 256;
constexpr std::size_t few_strangers = 16;  // for these there always is
constexpr std::size_t events_at_once = 32;

// Who never stops talking keeps nobody from their turn: this many rounds of events, then whoever waits looks at its
// deadline. And this many records of a process that has ended: more than a socket holds.
constexpr std::size_t most_rounds = 64;
constexpr std::size_t most_last_words = 4096;

bool add_watch(LenderCore& core, int fd, std::uint64_t about) noexcept {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u64 = about;
  return ::epoll_ctl(core.epoll.get(), EPOLL_CTL_ADD, fd, &event) == 0;
}

void drain(int fd) noexcept {
  std::uint64_t count = 0;
  [[maybe_unused]] const auto got = ::read(fd, &count, sizeof count);
}

// Armed while there is something that time alone may end: a lender that nobody asks is not to wake.
void set_timer(LenderCore& core, std::int64_t time = introduction_time) noexcept {
  const bool needed = core.strangers != 0 || (!core.accepting && !core.closed && core.endpoint.fd() >= 0);
  if (core.timer_armed == needed) return;
  itimerspec in{};
  if (needed) in.it_value = {time / 1'000'000'000, time % 1'000'000'000};
  if (::timerfd_settime(core.timer.get(), 0, &in, nullptr) == 0) core.timer_armed = needed;
}

// A quarter of the descriptors at most: the rest is for those who speak, and for what the runtime does for them.
std::size_t room_for_strangers() noexcept {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return most_strangers;
  return static_cast<std::size_t>(std::min<rlim_t>(limit.rlim_cur / 4, most_strangers));
}

// Ends the connection that has been silent longest, other than one that is about to speak; false when all have spoken.
bool end_oldest_stranger(LenderCore& core, const Connection* but = nullptr) noexcept {
  Connection* oldest = nullptr;
  for (auto& [id, connection] : core.connections) {
    if (!connection->stranger || connection.get() == but) continue;
    if (oldest == nullptr || connection->since < oldest->since) oldest = connection.get();
  }
  if (oldest == nullptr) return false;
  end_connection(core, *oldest);
  return true;
}

// Descriptors are taken from those who are silent: whoever speaks needs some more, for its process and for what the
// runtime does for it. Whether there were any.
bool make_room(LenderCore& core, const Connection* but = nullptr) noexcept {
  constexpr int at_once = 8;
  const Locked lock = lock_lending();
  bool any = false;
  for (int i = 0; i < at_once && end_oldest_stranger(core, but); ++i) any = true;
  return any;
}

void no_stranger_any_more(LenderCore& core, Connection& connection) noexcept {
  if (std::exchange(connection.stranger, false)) --core.strangers;
}

Connection* add_connection(LenderCore& core, UniqueFd&& socket, bool stranger = true) noexcept {
  ask_who_sends(socket.get());
  const Locked lock = lock_lending();
  if (stranger && core.strangers >= few_strangers && core.strangers >= room_for_strangers()) end_oldest_stranger(core);
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

void refuse(LenderCore& core, Connection& connection, const Error& error) noexcept {
  Message message;
  message.type = MessageType::refused;
  message.error = to_message(error);
  const Locked lock = lock_lending();
  if (connection.socket) (void)send_introduction(connection.socket.get(), encode(message).bytes());
  end_connection(core, connection);
  core.untold.push_back({LendingEvent::Kind::refused, {}, {.pid = connection.borrower.peer.pid}, error});
}

// The first message: who is there, by the kernel's word, and whether it may.
void introduce(LenderCore& core, Connection& connection, const Message& hello) noexcept {
  if (!connection.borrower.known || !permits(core.options.borrowers, connection.borrower.peer)) {
    refuse(core, connection, Error(Errc::not_permitted, Operation::serve, {.pid = connection.borrower.peer.pid}));
    return;
  }
  if (connection.borrower.no_room && !(make_room(core, &connection) && find_process(connection.borrower))) {
    // Its end would not be heard of, and its leases with it.
    refuse(core, connection, Error(Errc::fd_limit, Operation::serve, {.pid = connection.borrower.peer.pid}));
    return;
  }
  Message welcome;
  welcome.type = MessageType::welcome;
  const Locked lock = lock_lending();
  if (connection.borrower.process && !add_watch(core, connection.borrower.process.get(), connection.id | about_process)) {
    connection.borrower.process = {};  // its end would never be heard of: the connection's has to do
  }
  connection.introduced = true;
  no_stranger_any_more(core, connection);
  set_timer(core);
  connection.bare_pid = hello.pid;
  connection.can_import = hello.mechanisms;
  if (send_introduction(connection.socket.get(), encode(welcome).bytes()) != 0) end_connection(core, connection);
}

// One message of a connection, if there is one. What no borrower sends ends it: nothing that follows could be believed.
bool receive(LenderCore& core, Connection& connection) noexcept {
  Record record;
  const Received received = connection.introduced
                                ? receive_record(connection.socket.get(), record)
                                : receive_introduction(connection.socket.get(), record, connection.borrower);
  if (received == Received::nothing) return false;
  if (received == Received::closed) {
    const Locked lock = lock_lending();
    end_connection(core, connection);
    return false;
  }
  Message message;
  const Decoded decoded = received == Received::record ? decode(record.bytes(), true, message) : Decoded::malformed;
  if (decoded == Decoded::other_version) {
    refuse(core, connection, Error(Errc::version_mismatch, Operation::serve));
  } else if (decoded != Decoded::yes || (message.type == MessageType::hello) == connection.introduced) {
    refuse(core, connection, Error(Errc::bad_message, Operation::serve));
  } else if (!connection.introduced) {
    introduce(core, connection, message);
  } else if (!handle_message(core, connection, message)) {
    refuse(core, connection, Error(Errc::bad_message, Operation::serve));
  }
  return connection.socket.get() >= 0;
}

void process_ended(LenderCore& core, Connection& connection) noexcept {
  for (std::size_t i = 0; i < most_last_words && connection.socket && receive(core, connection); ++i) {
  }  // what it had still said
  const Locked lock = lock_lending();
  connection.borrower.process = {};
  end_connection(core, connection);
}

// There is no descriptor to accept with: one is given up for as long as it takes to say so.
void turn_away(LenderCore& core) noexcept {
  core.reserve = {};
  const UniqueFd socket(::accept4(core.endpoint.fd(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (socket) {
    Message message;
    message.type = MessageType::refused;
    message.error = to_message(Error(Errc::fd_limit, Operation::serve));
    (void)send_introduction(socket.get(), encode(message).bytes());
  }
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
    if (Connection* const added = add_connection(core, std::move(socket)); added != nullptr) (void)receive(core, *added);
  }
}

void time_has_come(LenderCore& core) noexcept {
  drain(core.timer.get());
  const Locked lock = lock_lending();
  core.timer_armed = false;
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

Connection* find(LenderCore& core, std::uint64_t id) noexcept {
  const auto found = core.connections.find(id);
  return found == core.connections.end() ? nullptr : found->second.get();
}

void deal_with(LenderCore& core, const epoll_event& event) noexcept {
  const std::uint64_t about = event.data.u64;
  if (about == about_endpoint) return accept_all(core);
  if (about == about_timer) return time_has_come(core);
  if (about == about_wake) {
    drain(core.wake.get());
    close_if_asked(core);
    answer_waiting(core);
    return;
  }
  Connection* const connection = find(core, about & ~about_process);
  if (connection == nullptr) return;  // it ended earlier among these events
  if ((about & about_process) != 0) return process_ended(core, *connection);
  if (!connection->socket) return;
  if ((event.events & EPOLLOUT) != 0) {
    const Locked lock = lock_lending();
    tell_the_rest(core, *connection);
  }
  if ((event.events & ~static_cast<std::uint32_t>(EPOLLOUT)) != 0) (void)receive(core, *connection);
}

// Connections that have ended and hold nothing any more; where there is no endpoint, also those that only hold nothing:
// perhaps nobody dispatches any more, and what they ask for would stay without an answer.
void sweep(LenderCore& core) noexcept {
  const Locked lock = lock_lending();
  if (!std::exchange(core.any_ended, false)) return;
  for (auto& [id, connection] : core.connections) {
    if (core.closed && connection->leases.empty() && connection->waiting.empty()) end_connection(core, *connection);
  }
  core.any_ended = false;
  std::erase_if(core.connections, [](const auto& entry) { return !entry.second->socket && entry.second->leases.empty(); });
}

void tell_events(LenderCore& core) noexcept {
  std::vector<Untold> untold;
  {
    const Locked lock = lock_lending();
    untold.swap(core.untold);
  }
  if (core.options.hook == nullptr) return;
  for (const Untold& event : untold) {
    const LendingEvent told{event.kind, event.offer, event.holder, event.error};
#if defined(__cpp_exceptions)
    try {
      core.options.hook(told, core.options.user);
    } catch (...) {
      // A hook that throws would end the dispatcher, and with it every borrower's answer.
    }
#else
    core.options.hook(told, core.options.user);
#endif
  }
}

// A lease whose ticket was never sent: without it nobody holds anything.
void drop_lease(LenderCore& core, Connection& connection, std::uint64_t id) noexcept {
  const auto found = std::find_if(connection.leases.begin(), connection.leases.end(),
                                  [&](const HeldLease& lease) { return lease.id == id; });
  if (found == connection.leases.end()) return;
  end_lease(core, connection, static_cast<std::size_t>(found - connection.leases.begin()), LendingEvent::Kind::returned);
}

}  // namespace

bool watch_endpoint(LenderCore& core) noexcept {
  if (!add_watch(core, core.wake.get(), about_wake) || !add_watch(core, core.timer.get(), about_timer)) return false;
  // Whoever has the other end was given it, and may take its time.
  if (core.endpoint.connected()) return add_connection(core, core.endpoint.take_connection(), false) != nullptr;
  core.accepting = add_watch(core, core.endpoint.fd(), about_endpoint);
  return core.accepting;
}

void wake_dispatcher(LenderCore& core) noexcept {
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written = ::write(core.wake.get(), &one, sizeof one);
}

// Its leases end with it, unless the kernel will say when its process ends: a process that has closed its connection may
// have its imports still.
void end_connection(LenderCore& core, Connection& connection) noexcept {
  if (connection.socket) {
    no_stranger_any_more(core, connection);
    set_timer(core);
    connection.socket = {};
    connection.behind = false;
    connection.waiting.clear();
    for (const UnsentAnswer& answer : std::exchange(connection.unsent, {})) drop_lease(core, connection, answer.lease);
  }
  if (connection.borrower.process && !connection.leases.empty()) return;
  core.any_ended = true;
  while (!connection.leases.empty()) {
    end_lease(core, connection, connection.leases.size() - 1, LendingEvent::Kind::died);
  }
  connection.borrower.process = {};
}

std::size_t dispatch_events(LenderCore& core, Deadline deadline) noexcept {
  std::array<epoll_event, events_at_once> events;
  std::size_t dealt_with = 0;
  for (std::size_t round = 0; round < most_rounds; ++round) {
    const std::int64_t left = dealt_with != 0 ? 0 : deadline.nanoseconds_left();
    const bool endless = deadline.is_never() && dealt_with == 0;
    const std::int64_t milliseconds = std::min<std::int64_t>(left / 1'000'000 + (left % 1'000'000 != 0 ? 1 : 0), 3'600'000);
    const int ready = ::epoll_wait(core.epoll.get(), events.data(), events_at_once, endless ? -1 : static_cast<int>(milliseconds));
    if (ready < 0 && errno != EINTR) break;
    for (int i = 0; i < ready; ++i) deal_with(core, events[static_cast<std::size_t>(i)]);
    if (ready > 0) {
      dealt_with += static_cast<std::size_t>(ready);
      sweep(core);
      tell_events(core);
      reap_parked(core);
    }
    if (ready < static_cast<int>(events_at_once) && (dealt_with != 0 || deadline.passed())) break;
  }
  return dealt_with;
}

}  // namespace devshare::detail
