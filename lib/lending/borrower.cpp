// SPDX-License-Identifier: Apache-2.0
// Borrowing: connect, ask, import.
#include "borrower_core.hpp"

#include "../core/expected_imports.hpp"
#include "../core/runtime_state.hpp"
#include "remote_error.hpp"

#include <algorithm>
#include <cerrno>
#include <memory>
#include <utility>

#include <fcntl.h>
#include <time.h>
#include <unistd.h>

namespace devshare {
namespace detail {
namespace {

constexpr std::size_t most_requests = 32;  // at once: the lender waits for nobody who does not read

// Connections that have ended while their lender took nothing: what was returned must be told. Guarded by
// Lock::lending; immortal.
std::vector<BorrowerCore*>& leftovers() noexcept {
  static auto* const all = new std::vector<BorrowerCore*>;
  return *all;
}

void end_core(BorrowerCore& core) noexcept {
  forget_core(core);
  delete &core;
}

void flush_leftovers() noexcept {
  const Locked lock = lock_lending();
  std::erase_if(leftovers(), [](BorrowerCore* core) {
    if (core->of_parent) return true;
    flush(*core);
    if (!core->gone && !core->unsent.empty()) return false;
    end_core(*core);
    return true;
  });
}

void pause(Deadline deadline, std::int64_t nanoseconds) noexcept {
  const std::int64_t time = std::min(deadline.nanoseconds_left(), nanoseconds);
  const timespec pause{0, time};
  ::nanosleep(&pause, nullptr);
}

Result<UniqueFd> take_over(int fd) noexcept {
  if (!is_record_socket(fd) || is_listening(fd)) {
    return Error(Errc::invalid_argument, Operation::borrow, {.system_errno = ENOTSOCK});
  }
  (void)::fcntl(fd, F_SETFD, FD_CLOEXEC);
  ask_who_sends(fd);
  return UniqueFd(fd);
}

Result<UniqueFd> connect_once(const Endpoint& endpoint) noexcept {
  if (endpoint.kind() == Endpoint::Kind::descriptor) return take_over(endpoint.fd());
  DEVSHARE_TRY(socket, new_socket(Operation::borrow));
  ask_who_sends(socket.get());
  const Address address = address_of(endpoint);
  if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address.name), address.size) != 0) {
    return socket_error(Operation::borrow, errno);
  }
  return socket;
}

Result<void> be_introduced(BorrowerCore& core, BarePid self, Deadline deadline, const Allow& allowed) noexcept {
  Message hello;
  hello.type = MessageType::hello;
  hello.pid = self.to_message();
  hello.mechanisms = importable(core.device);
  if (const int failed = send_introduction(core.socket.get(), encode(hello).bytes()); failed != 0) {
    return socket_error(Operation::borrow, failed);
  }
  {
    Locked lock = lock_lending();
    const bool heard = core.turn.wait(
        lock, deadline, [&] { return core.welcome || core.gone; }, [&](Deadline until) { hear_lender(core, until); });
    if (!heard) return Error(Errc::timed_out, Operation::borrow);
    if (core.gone) return core.why_gone;
  }
  const PeerProcess& lender = core.lender.peer;
  if (lender.uid == 0 || permits(allowed, lender)) return {};
  return Error(Errc::not_permitted, Operation::borrow, {.pid = lender.pid});
}

BorrowerCore* new_core(const Device& device, UniqueFd&& socket) noexcept {
  auto* const core = new BorrowerCore(device);
  core->socket = std::move(socket);
  core->references = 1;
  register_core(*core);
  return core;
}

// Whether a lender that is not there, or not any more, may be there in a moment.
bool may_come(Errc kind) noexcept {
  return kind == Errc::no_lender || kind == Errc::exporter_gone || kind == Errc::timed_out;
}

Result<BorrowerCore*> connect(const Device& device, const Endpoint& endpoint, Deadline deadline,
                              const Allow& allowed) noexcept {
  const Session& session = device.session();
  if (!session.alive()) return unusable(session, Operation::borrow);
  if (!endpoint.usable()) return Error(Errc::invalid_argument, Operation::borrow);
  DEVSHARE_TRY(self, device.runtime().bare_pid());
  flush_leftovers();
  constexpr std::int64_t longest_pause = 20'000'000;
  Error before(Errc::timed_out, Operation::borrow);
  for (std::int64_t time = 500'000;; time = std::min(2 * time, longest_pause)) {
    const bool no_time = deadline.passed();
    Error why(Errc::no_lender, Operation::borrow);
    if (auto socket = connect_once(endpoint); !socket) {
      why = socket.error();
    } else {
      BorrowerCore* const core = new_core(device, *std::move(socket));
      auto introduced = be_introduced(*core, self, deadline, allowed);
      if (introduced) return core;
      drop_reference(*core);
      why = introduced.error();
    }
    if (no_time && why.kind() == Errc::timed_out) why = before;  // the last try could not learn anything new
    if (!may_come(why.kind()) || endpoint.kind() == Endpoint::Kind::descriptor || deadline.passed()) return why;
    before = why;
    pause(deadline, time);
  }
}

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

}  // namespace

void drop_reference(BorrowerCore& core) noexcept {
  const Locked lock = lock_lending();
  if (--core.references != 0) return;
  flush(core);
  if (core.gone || core.unsent.empty()) {
    end_core(core);
  } else {
    leftovers().push_back(&core);
  }
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

namespace {

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

}  // namespace

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

template Result<Lease> borrow_from(const Owned<BorrowerPolicy>&, std::string_view, Deadline, Slice) noexcept;
template Result<ConstLease> borrow_from(const Owned<BorrowerPolicy>&, std::string_view, Deadline, Slice) noexcept;
template Result<std::vector<Lease>> borrow_all_from(const Owned<BorrowerPolicy>&, std::span<const std::string_view>,
                                                    Deadline) noexcept;
template Result<std::vector<ConstLease>> borrow_all_from(const Owned<BorrowerPolicy>&,
                                                         std::span<const std::string_view>, Deadline) noexcept;

Result<void> BorrowerPolicy::close(const Session&, const Value& value) noexcept {
  drop_reference(*value.core);
  return {};
}

void BorrowerPolicy::abandon(const Value& value) noexcept {
  if (!value.core->of_parent) drop_reference(*value.core);
}

}  // namespace detail

Result<Borrower> Borrower::connect(const Device& device, const Endpoint& endpoint, Deadline deadline,
                                   Allow lender) noexcept {
  DEVSHARE_TRY(core, detail::connect(device, endpoint, deadline, lender));
  return Borrower(device.session(), {core});
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
