// SPDX-License-Identifier: Apache-2.0
// The dispatcher: connections that introduce themselves, speak and end, and the ends of processes.
#include "dispatcher.hpp"
#include "remote_error.hpp"

#include <algorithm>
#include <utility>

namespace devshare::detail {
namespace {

// Of a process that has ended: more than a socket holds. Who never stops talking keeps nobody here.
constexpr std::size_t most_last_words = 4096;

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

// A lease whose ticket was never sent: without it nobody holds anything.
void drop_lease(LenderCore& core, Connection& connection, std::uint64_t id) noexcept {
  const auto found = std::find_if(connection.leases.begin(), connection.leases.end(),
                                  [&](const HeldLease& lease) { return lease.id == id; });
  if (found == connection.leases.end()) return;
  end_lease(core, connection, static_cast<std::size_t>(found - connection.leases.begin()), LendingEvent::Kind::returned);
}

}  // namespace

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

}  // namespace devshare::detail
