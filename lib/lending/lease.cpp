// SPDX-License-Identifier: Apache-2.0
// Leases, while they live.
#include "borrower_core.hpp"

#include <cerrno>

#include <sys/epoll.h>

namespace devshare {
namespace detail {
namespace {

// Looks what the lender has said, unless another thread is at that.
Locked listen(BorrowerCore& core) noexcept {
  Locked lock = lock_lending();
  flush(core);
  if (!core.gone) core.turn.try_once(lock, [&] { hear_lender(core, Deadline::now()); });
  return lock;
}

// What speaks against going on with a lease.
Result<void> still_lent(const LeaseRecord& lease, Operation operation) noexcept {
  const BorrowerCore& core = *lease.core;
  const Detail detail{.device = core.device.number(), .pid = core.lender.peer.pid};
  if (lease.revoked) return Error(Errc::revoked, operation, detail);
  if (core.gone) return Error(Errc::exporter_gone, operation, detail);
  return {};
}

bool watch(const UniqueFd& epoll, int fd) noexcept {
  epoll_event event{};
  event.events = EPOLLIN;
  return fd < 0 || ::epoll_ctl(epoll.get(), EPOLL_CTL_ADD, fd, &event) == 0;
}

Result<void> check_lease(const Owned<LeasePolicy>& owned, Mechanism mechanism) noexcept {
  if (!owned.holds() || !owned.session().alive()) return unusable(owned.session(), Operation::use_lease);
  const LeaseRecord& lease = *owned.value().record;
  const Locked lock = listen(*lease.core);
  // What came by a handle is this process's as well (R39).
  if (!lease.revoked && mechanism != Mechanism::by_key) return {};
  return still_lent(lease, Operation::use_lease);
}

bool lease_wanted_back(const Owned<LeasePolicy>& owned) noexcept {
  if (!owned.holds() || !owned.session().alive()) return false;
  const LeaseRecord& lease = *owned.value().record;
  const Locked lock = listen(*lease.core);
  return lease.wanted_back || lease.core->gone;
}

std::uint64_t lease_generation(const Owned<LeasePolicy>& owned) noexcept {
  if (!owned.holds() || !owned.session().alive()) return 0;
  const LeaseRecord& lease = *owned.value().record;
  const Locked lock = listen(*lease.core);
  return lease.generation;
}

Result<std::uint64_t> wait_newer(const Owned<LeasePolicy>& owned, std::uint64_t than, Deadline deadline) noexcept {
  constexpr Operation operation = Operation::wait_for_newer;
  if (!owned.holds() || !owned.session().alive()) return unusable(owned.session(), operation);
  const LeaseRecord& lease = *owned.value().record;
  BorrowerCore& core = *lease.core;
  Locked lock = lock_lending();
  core.turn.wait(
      lock, deadline, [&] { return lease.generation > than || lease.revoked || core.gone; },
      [&](Deadline until) { hear_lender(core, until); });
  if (lease.generation > than) return lease.generation;
  DEVSHARE_CHECK(still_lent(lease, operation));
  return Error(Errc::timed_out, operation, {.device = core.device.number(), .pid = core.lender.peer.pid});
}

Result<int> lease_handle(const Owned<LeasePolicy>& owned) noexcept {
  if (!owned.holds() || !owned.session().alive()) return unusable(owned.session(), Operation::use_lease);
  BorrowerCore& core = *owned.value().record->core;
  const Locked lock = lock_lending();
  if (!core.watched) {
    UniqueFd epoll(::epoll_create1(EPOLL_CLOEXEC));
    if (!epoll || !watch(epoll, core.socket.get()) || !watch(epoll, core.lender.process.get())) {
      return socket_error(Operation::use_lease, errno);
    }
    core.watched = std::move(epoll);
  }
  return core.watched.get();
}

}  // namespace

Result<void> LeasePolicy::close(const Session&, const Value& value) noexcept {
  BorrowerCore& core = *value.record->core;
  {
    const Locked lock = lock_lending();
    Message message;
    message.type = MessageType::returned;
    message.lease = value.record->id;
    std::erase(core.leases, value.record);
    tell_lender(core, message);
  }
  delete value.record;
  drop_reference(core);
  return {};
}

void LeasePolicy::abandon(const Value& value) noexcept {
  if (!value.record->core->of_parent) (void)close({}, value);
}

}  // namespace detail

template <class Access>
Result<void> BasicLease<Access>::check() const noexcept {
  DEVSHARE_CHECK(detail::check_lease(lease_, mapping_.mechanism()));
  auto there = mapping_.check();
  if (there) return there;
  // Gone between the two looks? Then the lender has said why.
  DEVSHARE_CHECK(detail::check_lease(lease_, mapping_.mechanism()));
  return there;
}

template <class Access>
Result<DeviceSpan<typename Access::Byte>> BasicLease<Access>::checked_bytes() const& noexcept {
  DEVSHARE_CHECK(check());
  return mapping_.bytes();
}

template <class Access>
bool BasicLease<Access>::wanted_back() const noexcept {
  return detail::lease_wanted_back(lease_);
}

template <class Access>
std::uint64_t BasicLease<Access>::generation() const noexcept {
  return detail::lease_generation(lease_);
}

template <class Access>
Result<std::uint64_t> BasicLease<Access>::wait_newer(std::uint64_t than, Deadline deadline) const noexcept {
  return detail::wait_newer(lease_, than, deadline);
}

template <class Access>
Result<int> BasicLease<Access>::native_handle() const noexcept {
  return detail::lease_handle(lease_);
}

template <class Access>
Result<void, Refused<BasicLease<Access>>> BasicLease<Access>::close() && noexcept {
  auto closed = mapping_.owned().close(Operation::close_import);
  if (!mapping_.owned().holds()) {
    if (auto returned = lease_.close(Operation::return_lease); !returned) closed = std::move(returned);
  }
  if (closed) return {};
  return Refused<BasicLease>(closed.error(), std::move(*this));
}

template <class Access>
void BasicLease<Access>::end() noexcept {
  if (!lease_.session().alive()) return;  // then each member does what is to be done without a runtime
  const void* const address = mapping_.bytes().data().address();
  auto closed = mapping_.owned().close(Operation::close_import);
  if (closed) return;
  if (mapping_.owned().holds()) {  // as long as it is parked the lender counts us
    (void)lease_.release();
    detail::ImportPolicy::park(mapping_.owned().release(), closed.error());
  } else if (mapping_.mechanism() == Mechanism::by_key) {
    detail::report({DiagnosticEvent::close_failed, closed.error(), address});
  }
}

template class BasicLease<ReadWrite>;
template class BasicLease<ReadOnly>;

}  // namespace devshare
