// SPDX-License-Identifier: Apache-2.0
// What a lender tells of itself. A borrower that reads too slowly is told the newest, once it can take it: what it missed
// in between it need not know.
#include "lender_core.hpp"

#include <cerrno>

#include <sys/epoll.h>

namespace devshare::detail {
namespace {

// False: it cannot take any more now.
bool tell(Connection& connection, HeldLease& lease) noexcept {
  const OfferRecord& offer = *lease.offer;
  const auto send = [&](MessageType type) {
    Message message;
    message.type = type;
    message.lease = lease.id;
    message.generation = offer.generation;
    return send_record(connection.socket.get(), encode(message).bytes()) != EAGAIN;
  };
  if (lease.told_generation < offer.generation) {
    if (!send(MessageType::newer)) return false;
    lease.told_generation = offer.generation;
  }
  if (lease.told_state < offer.state) {
    if (!send(offer.state == OfferRecord::State::revoked ? MessageType::revoked : MessageType::wanted_back)) return false;
    lease.told_state = offer.state;
  }
  return true;
}

// What could not be answered when it was asked. False: it cannot take any more now.
bool send_answers(Connection& connection) noexcept {
  auto next = connection.unsent.begin();
  while (next != connection.unsent.end() && send_record(connection.socket.get(), next->bytes.bytes()) != EAGAIN) ++next;
  connection.unsent.erase(connection.unsent.begin(), next);
  return connection.unsent.empty();
}

void fall_behind(LenderCore& core, Connection& connection, bool behind) noexcept {
  if (connection.behind == behind) return;
  connection.behind = behind;
  watch(core, connection);
}

}  // namespace

void watch(LenderCore& core, Connection& connection) noexcept {
  epoll_event event{};
  event.events = connection.behind ? EPOLLIN | EPOLLOUT : EPOLLIN;
  event.data.u64 = connection.id;
  if (::epoll_ctl(core.epoll.get(), EPOLL_CTL_MOD, connection.socket.get(), &event) != 0 && errno == ENOENT) {
    (void)::epoll_ctl(core.epoll.get(), EPOLL_CTL_ADD, connection.socket.get(), &event);
  }
}

// An answer. There may be no room for it although its borrower reads what it asked for: news came first. Who does not
// take that many has asked for more than it reads, and is no borrower of ours.
bool send_to(LenderCore& core, Connection& connection, const Message& message) noexcept {
  constexpr std::size_t most_unsent = 256;
  if (!connection.socket) return false;
  const MessageBytes bytes = encode(message);
  if (connection.unsent.empty()) {
    const int failed = send_record(connection.socket.get(), bytes.bytes());
    if (failed != EAGAIN) return failed == 0;
  }
  if (connection.unsent.size() >= most_unsent) {
    end_connection(core, connection);
    return false;
  }
  connection.unsent.push_back({message.lease, bytes});
  fall_behind(core, connection, true);
  return true;
}

void tell_holders(LenderCore& core, const OfferRecord& offer) noexcept {
  if (offer.holders == 0) return;
  for (auto& [id, connection] : core.connections) {
    if (!connection->socket || connection->behind) continue;
    for (HeldLease& lease : connection->leases) {
      if (lease.offer == &offer && !tell(*connection, lease)) {
        fall_behind(core, *connection, true);
        break;
      }
    }
  }
}

void tell_the_rest(LenderCore& core, Connection& connection) noexcept {
  if (!send_answers(connection)) return;
  for (HeldLease& lease : connection.leases) {
    if (!tell(connection, lease)) return;
  }
  fall_behind(core, connection, false);
}

}  // namespace devshare::detail
