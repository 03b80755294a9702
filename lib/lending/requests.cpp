// SPDX-License-Identifier: Apache-2.0
// The dispatcher: what a borrower asks for and tells. The runtime is called here, and nowhere else on a borrower's
// behalf.
#include "lender_core.hpp"

#include "../sharing/export_record.hpp"
#include "remote_error.hpp"

#include <algorithm>
#include <utility>

#include <time.h>
#include <unistd.h>

namespace devshare::detail {
namespace {

constexpr std::size_t most_waiting = 64;  // requests of one connection

std::int64_t now_since_1970() noexcept {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  return static_cast<std::int64_t>(now.tv_sec) * 1000 + now.tv_nsec / 1'000'000;
}

// Chooses the kind and exports, for the first borrower; for later ones it must be a kind that they can.
Result<void> export_for_borrower(OfferRecord& offer, Mechanisms can) noexcept {
  if (offer.exported.holds()) {
    if (can.contains(offer.mechanism)) return {};
    return Error(Errc::already_exported_as, Operation::export_handle, {.device = offer.device});
  }
  Mechanisms allowed = offer.family & can;
  Error last(Errc::mechanism_mismatch, Operation::choose, {.device = offer.device});
  while (const auto mechanism = offer.prefer.first_of(allowed)) {
    auto opened = offer.memory->open_export(*offer.memory, *mechanism);
    if (opened) {
      offer.exported = Owned<ExportPolicy>(offer.session, *opened);
      offer.mechanism = *mechanism;
      return {};
    }
    last = opened.error();
    if (last.kind() != Errc::unsupported_by_runtime) return last;  // the product may lack a kind; nothing else is a choice
    allowed = Mechanisms::from_message(allowed.to_message() & ~Mechanisms{*mechanism}.to_message());
  }
  return last;
}

bool is_admitted(const Connection& connection, const OfferRecord& offer) noexcept {
  return std::find(connection.admitted.begin(), connection.admitted.end(), offer.serial) != connection.admitted.end();
}

// Without the lock: the runtime is called.
Result<TicketBytes> make_ticket(OfferRecord& offer, const Connection& connection, const WaitingRequest& request,
                                bool admitted) noexcept {
  if (!offer.session.alive()) return unusable(offer.session, Operation::serve);
  if (connection.borrower.peer.pid == ::getpid()) return Error(Errc::self_import, Operation::serve, {.device = offer.device});
  if (request.access == AccessMode::read_write && offer.access == AccessMode::read_only) {
    return Error(Errc::access_mismatch, Operation::serve, {.device = offer.device});
  }
  DEVSHARE_CHECK(export_for_borrower(offer, connection.can_import));
  if (admitted) return issue_ticket(offer.exported, request.slice, request.access);
  const BarePid pid = BarePid::from_peer_message(connection.bare_pid);
  return admit(offer.exported, {&pid, 1}, request.slice, request.access);
}

void refuse(LenderCore& core, Connection& connection, const WaitingRequest& request, const Error& error) noexcept {
  Message message;
  message.type = MessageType::refused;
  message.request = request.request;
  message.error = to_message(error);
  (void)send_to(core, connection, message);
  core.untold.push_back(
      {LendingEvent::Kind::refused, request.name, {.pid = connection.borrower.peer.pid, .device = request.device}, error});
}

void lend(LenderCore& core, Connection& connection, const WaitingRequest& request, OfferRecord& offer,
          const TicketBytes& ticket) noexcept {
  if (!is_admitted(connection, offer)) connection.admitted.push_back(offer.serial);
  HeldLease lease;
  lease.id = ++core.next_lease;
  lease.request = request.request;
  lease.offer = &offer;
  lease.holder = {.pid = connection.borrower.peer.pid,
                  .since = now_since_1970(),
                  .device = request.device,
                  .mechanism = offer.mechanism};
  lease.told_generation = offer.generation;
  Message message;
  message.type = MessageType::lent;
  message.request = request.request;
  message.lease = lease.id;
  message.generation = offer.generation;
  message.ticket = ticket.storage;
  if (!send_to(core, connection, message)) return;  // without its ticket nobody holds anything
  connection.leases.push_back(lease);
  ++offer.holders;
}

std::size_t find_lease(const Connection& connection, std::uint64_t id) noexcept {
  const auto found = std::find_if(connection.leases.rbegin(), connection.leases.rend(),
                                  [&](const HeldLease& lease) { return lease.id == id; });
  return static_cast<std::size_t>(connection.leases.rend() - found) - 1;  // the largest number where there is none
}

void note_imported(LenderCore& core, HeldLease& lease) noexcept {
  if (std::exchange(lease.holder.imported, true)) return;
  core.untold.push_back({LendingEvent::Kind::imported, lease.offer->name, lease.holder});
}

// Of a lease that this side has ended already nothing more is to be done.
void handle_report(LenderCore& core, Connection& connection, const Message& message) noexcept {
  const Locked lock = lock_lending();
  const std::size_t index = find_lease(connection, message.lease);
  if (index >= connection.leases.size()) return;
  if (message.type == MessageType::imported) return note_imported(core, connection.leases[index]);
  if (message.type == MessageType::not_imported) {
    // What it was told by the runtime may be that it is not admitted any more: then it is admitted anew next time.
    std::erase(connection.admitted, connection.leases[index].offer->serial);
    end_lease(core, connection, index, LendingEvent::Kind::not_imported,
              from_message(message.error, Operation::serve, connection.borrower.peer.pid));
    return;
  }
  end_lease(core, connection, index, LendingEvent::Kind::returned);
}

// Nobody waits for the answer any more. A lease that was the answer is nobody's: whoever gave it up may have gone
// without having read it, and its process may live on for long.
void cancel(LenderCore& core, Connection& connection, std::uint32_t request) noexcept {
  const Locked lock = lock_lending();
  std::erase_if(connection.waiting, [&](const WaitingRequest& waiting) { return waiting.request == request; });
  const auto found = std::find_if(connection.leases.begin(), connection.leases.end(), [&](const HeldLease& lease) {
    return lease.request == request && !lease.holder.imported;
  });
  if (found == connection.leases.end()) return;
  const auto index = static_cast<std::size_t>(found - connection.leases.begin());
  end_lease(core, connection, index, LendingEvent::Kind::returned);
}

}  // namespace

void answer(LenderCore& core, Connection& connection, const WaitingRequest& request, bool may_wait) noexcept {
  OfferRecord* offer = nullptr;
  bool admitted = false;
  {
    const Locked lock = lock_lending();
    if (!connection.socket) return;  // it took an earlier answer badly: a lease of it would never end
    offer = find_offer(core, request.name);
    if (offer == nullptr) {
      if (may_wait && !core.closed && connection.waiting.size() < most_waiting) {
        connection.waiting.push_back(request);
        Message message;
        message.type = MessageType::waiting;
        message.request = request.request;
        (void)send_to(core, connection, message);
        return;
      }
      return refuse(core, connection, request, Error(Errc::no_such_offer, Operation::serve));
    }
    ++offer->busy;
    admitted = is_admitted(connection, *offer);
  }
  const Result<TicketBytes> ticket = make_ticket(*offer, connection, request, admitted);
  const Locked lock = lock_lending();
  --offer->busy;
  if (!ticket) {
    refuse(core, connection, request, ticket.error());
  } else if (offer->state != OfferRecord::State::offered) {
    refuse(core, connection, request, Error(Errc::no_such_offer, Operation::serve));
  } else {
    lend(core, connection, request, *offer, *ticket);
  }
  core.turn.changed();
}

void answer_waiting(LenderCore& core) noexcept {
  std::vector<std::pair<std::uint64_t, WaitingRequest>> ready;
  {
    const Locked lock = lock_lending();
    for (auto& entry : core.connections) {  // no structured binding: clang 14 lets no lambda have one
      std::erase_if(entry.second->waiting, [&](WaitingRequest& request) {
        if (!core.closed && find_offer(core, request.name) == nullptr) return false;
        ready.emplace_back(entry.first, std::move(request));
        return true;
      });
    }
  }
  for (const auto& [id, request] : ready) {
    if (const auto found = core.connections.find(id); found != core.connections.end()) {
      answer(core, *found->second, request, true);
    }
  }
  const Locked lock = lock_lending();
  if (core.closed) core.any_ended = true;
}

bool handle_message(LenderCore& core, Connection& connection, const Message& message) noexcept {
  switch (message.type) {
    case MessageType::borrow:
      answer(core, connection,
             {message.request, message.access, message.device, message.slice, std::string(message.name())}, message.may_wait);
      return true;
    case MessageType::cancel:
      cancel(core, connection, message.request);
      return true;
    case MessageType::imported:
    case MessageType::not_imported:
    case MessageType::returned:
      handle_report(core, connection, message);
      return true;
    default:
      return false;
  }
}

}  // namespace devshare::detail
