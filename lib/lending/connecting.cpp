// SPDX-License-Identifier: Apache-2.0
// A borrower's connection, from the wait for its lender to the last word it has to say.
#include "borrower_core.hpp"

#include <devshare/runtime.hpp>

#include <algorithm>
#include <cerrno>
#include <utility>

#include <fcntl.h>
#include <time.h>

namespace devshare {
namespace detail {
namespace {

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
    hear_lender(core, Deadline::now());  // it may have said why before it hung up
    const Locked lock = lock_lending();
    return core.gone ? core.why_gone : socket_error(Operation::borrow, failed);
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

}  // namespace

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

}  // namespace devshare
