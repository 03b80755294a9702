// SPDX-License-Identifier: Apache-2.0
// Borrowing: ask, import.
#include "borrower_core.hpp"

#include "../core/expected_imports.hpp"
#include "../core/runtime_state.hpp"
#include "remote_error.hpp"

#include <algorithm>
#include <utility>

namespace devshare {
namespace detail {
namespace {

constexpr std::size_t most_requests = 32;  // at once: the lender waits for nobody who does not read

void ask(BorrowerCore& core, Request& request, std::string_view name, AccessMode access, Slice slice,
         bool may_wait) noexcept {
  Message message;
  message.type = MessageType::borrow;
  message.request = request.number = ++core.last_request;
  message.access = access;
  message.may_wait = may_wait;
  message.device = driver_number(*core.session.record, core.device.number());
  message.slice = slice;
  message.set_name(name);
  core.requests.push_back(&request);
  tell_lender(core, message);
}

// Under the lock: the lease is over, and the lender is told by this message.
void end_lease(LeaseRecord* lease, Message message) noexcept {
  message.lease = lease->id;
  std::erase(lease->core->leases, lease);
  tell_lender(*lease->core, message);
  delete lease;
}

Message returned() noexcept {
  Message message;
  message.type = MessageType::returned;
  return message;
}

// Nobody waits for this request any more.
void give_up(BorrowerCore& core, Request& request) noexcept {
  std::erase(core.requests, &request);
  if (LeaseRecord* const lease = std::exchange(request.lease, nullptr); lease != nullptr) {
    return end_lease(lease, returned());
  }
  if (request.answered) return;
  ++core.cancelled;
  Message message;
  message.type = MessageType::cancel;
  message.request = request.number;
  tell_lender(core, message);
}

// What an answered request, or one whose time is over, has come to: a lease, or why not.
Result<LeaseRecord*> outcome(BorrowerCore& core, Request& request) noexcept {
  if (LeaseRecord* const lease = std::exchange(request.lease, nullptr); lease != nullptr) {
    std::erase(core.requests, &request);
    return lease;
  }
  give_up(core, request);
  if (request.answered) return from_message(request.answer.error, Operation::borrow, core.lender.peer.pid);
  if (core.gone) return core.why_gone;
  return Error(request.offer_awaited ? Errc::no_such_offer : Errc::timed_out, Operation::borrow,
               {.pid = core.lender.peer.pid});
}

Result<void> check(const Owned<BorrowerPolicy>& borrower) noexcept {
  if (!borrower.holds() || !borrower.session().alive()) return unusable(borrower.session(), Operation::borrow);
  return {};
}

Result<void> check(std::string_view name) noexcept {
  if (name.empty() || name.size() > longest_offer_name || name.find('\0') != name.npos) {
    return Error(Errc::invalid_argument, Operation::borrow, {.needed = name.size(), .available = longest_offer_name});
  }
  return {};
}

// The lease is over before it began: the lender is told why.
Error not_imported(BorrowerCore& core, LeaseRecord* lease, const Error& why) noexcept {
  Locked lock = lock_lending();
  // Taken back meanwhile? Then the runtime's words are about something that the lender can name.
  core.turn.try_once(lock, [&] { hear_lender(core, Deadline::now()); });
  Error error = why;
  if (lease->wanted_back && (error.kind() == Errc::stale_token || error.kind() == Errc::exporter_gone)) {
    error = Error(Errc::revoked, Operation::borrow, {.device = core.device.number(), .pid = core.lender.peer.pid});
  }
  Message message;
  message.type = MessageType::not_imported;
  message.error = to_message(error);
  end_lease(lease, message);
  return error;
}

template <class Access>
Result<BasicLease<Access>> import_lent(BorrowerCore& core, LeaseRecord* lease, const Result<ReceivedTicket>& ticket) noexcept {
  if (!ticket) return not_imported(core, lease, ticket.error());
  auto imported = BasicImportedMapping<Access>::open(*ticket, core.device);
  if (!imported) return not_imported(core, lease, imported.error());
  const Locked lock = lock_lending();
  Message message;
  message.type = MessageType::imported;
  message.lease = lease->id;
  tell_lender(core, message);
  ++core.references;
  return BasicLease<Access>(core.session, {lease}, *std::move(imported));
}

Result<LeaseRecord*> ask_and_wait(BorrowerCore& core, Request& request, std::string_view name, AccessMode access,
                                  Slice slice, Deadline deadline) noexcept {
  Locked lock = lock_lending();
  if (core.gone) return core.why_gone;
  ask(core, request, name, access, slice, !deadline.is_now());
  core.turn.wait(
      lock, deadline, [&] { return request.answered || core.gone; }, [&](Deadline until) { hear_lender(core, until); });
  return outcome(core, request);
}

template <class Access>
Result<BasicLease<Access>> borrow_from(const Owned<BorrowerPolicy>& borrower, std::string_view name, Deadline deadline,
                                       Slice slice) noexcept {
  DEVSHARE_CHECK(check(borrower));
  DEVSHARE_CHECK(check(name));
  flush_leftovers();
  BorrowerCore& core = *borrower.value().core;
  Request request;
  DEVSHARE_TRY(lease, ask_and_wait(core, request, name, Access::mode, slice, deadline));
  return import_lent<Access>(core, lease, ReceivedTicket::decode(request.answer.ticket));
}

// Asks for some offers together and waits for all answers. On an error none of them is held.
Result<std::vector<LeaseRecord*>> ask_together(BorrowerCore& core, std::span<Request> requests,
                                               std::span<const std::string_view> names, AccessMode access,
                                               Deadline deadline) noexcept {
  std::vector<LeaseRecord*> leases;
  Locked lock = lock_lending();
  if (core.gone) return core.why_gone;
  for (std::size_t i = 0; i < names.size(); ++i) ask(core, requests[i], names[i], access, {}, !deadline.is_now());
  for (Request& request : requests) {
    core.turn.wait(
        lock, deadline, [&] { return request.answered || core.gone; },
        [&](Deadline until) { hear_lender(core, until); });
    auto lent = outcome(core, request);
    if (lent) {
      leases.push_back(*lent);
      continue;
    }
    for (Request* rest = &request + 1; rest != requests.data() + requests.size(); ++rest) give_up(core, *rest);
    for (LeaseRecord* const lease : leases) end_lease(lease, returned());
    return lent.error();
  }
  return leases;
}

template <class Access>
Result<void> borrow_together(BorrowerCore& core, std::span<const std::string_view> names, Deadline deadline,
                             std::vector<BasicLease<Access>>& into) noexcept {
  std::vector<Request> requests(names.size());
  DEVSHARE_TRY(lent, ask_together(core, requests, names, Access::mode, deadline));
  std::vector<Result<ReceivedTicket>> tickets;
  std::vector<const TicketFields*> expected;
  tickets.reserve(lent.size());
  for (const Request& request : requests) {
    tickets.push_back(ReceivedTicket::decode(request.answer.ticket));
    if (tickets.back()) expected.push_back(&(*tickets.back()).fields());
  }
  const ExpectedImports ahead(core.session, expected);
  for (std::size_t i = 0; i < lent.size(); ++i) {
    auto lease = import_lent<Access>(core, lent[i], tickets[i]);
    if (!lease) {
      const Locked lock = lock_lending();
      for (std::size_t rest = i + 1; rest < lent.size(); ++rest) end_lease(lent[rest], returned());
      return lease.error();
    }
    into.push_back(*std::move(lease));
  }
  return {};
}

template <class Access>
Result<std::vector<BasicLease<Access>>> borrow_all_from(const Owned<BorrowerPolicy>& borrower,
                                                        std::span<const std::string_view> names,
                                                        Deadline deadline) noexcept {
  DEVSHARE_CHECK(check(borrower));
  for (const std::string_view name : names) DEVSHARE_CHECK(check(name));
  flush_leftovers();
  std::vector<BasicLease<Access>> leases;
  leases.reserve(names.size());
  while (!names.empty()) {
    const auto some = names.first(std::min(names.size(), most_requests));
    DEVSHARE_CHECK(borrow_together<Access>(*borrower.value().core, some, deadline, leases));
    names = names.subspan(some.size());
  }
  return leases;
}

}  // namespace
}  // namespace detail

Result<Lease> Borrower::borrow(std::string_view name, Deadline deadline, Slice slice) const noexcept {
  return detail::borrow_from<ReadWrite>(borrower_, name, deadline, slice);
}

Result<ConstLease> Borrower::borrow_to_read(std::string_view name, Deadline deadline, Slice slice) const noexcept {
  return detail::borrow_from<ReadOnly>(borrower_, name, deadline, slice);
}

Result<std::vector<Lease>> Borrower::borrow_all(std::span<const std::string_view> names,
                                                Deadline deadline) const noexcept {
  return detail::borrow_all_from<ReadWrite>(borrower_, names, deadline);
}

Result<std::vector<ConstLease>> Borrower::borrow_all_to_read(std::span<const std::string_view> names,
                                                             Deadline deadline) const noexcept {
  return detail::borrow_all_from<ReadOnly>(borrower_, names, deadline);
}

Result<Lease> borrow(const Device& device, const Endpoint& endpoint, std::string_view name, Deadline deadline,
                     BorrowOptions options) noexcept {
  DEVSHARE_TRY(borrower, Borrower::connect(device, endpoint, deadline, options.lender));
  return borrower.borrow(name, deadline, options.slice);
}

Result<ConstLease> borrow_to_read(const Device& device, const Endpoint& endpoint, std::string_view name,
                                  Deadline deadline, BorrowOptions options) noexcept {
  DEVSHARE_TRY(borrower, Borrower::connect(device, endpoint, deadline, options.lender));
  return borrower.borrow_to_read(name, deadline, options.slice);
}

}  // namespace devshare
