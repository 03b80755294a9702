// SPDX-License-Identifier: Apache-2.0
#include "lender_core.hpp"

#include <cerrno>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>

namespace devshare {
namespace detail {
namespace {

// Lenders that have ended and still have offers: nobody dispatches them any more, but those who close the offers, and
// whoever uses another lender. Guarded by Lock::lending; immortal.
std::vector<LenderCore*>& orphans() noexcept {
  static auto* const all = new std::vector<LenderCore*>;
  return *all;
}

Result<void> make_descriptors(LenderCore& core) noexcept {
  core.epoll = UniqueFd(::epoll_create1(EPOLL_CLOEXEC));
  core.wake = UniqueFd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  core.timer = UniqueFd(::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK));
  core.reserve = UniqueFd(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  if (core.epoll && core.wake && core.timer && core.reserve && watch_endpoint(core)) return {};
  return socket_error(Operation::open_lender, errno);
}

// The endpoint is the dispatcher's, who may be about to accept: it closes it, whoever that is now.
void close_endpoint(LenderCore& core) noexcept {
  Locked lock = lock_lending();
  core.closing = true;
  wake_dispatcher(core);
  core.turn.wait(
      lock, Deadline::never(), [&] { return core.closed; }, [&](Deadline until) { (void)dispatch_events(core, until); });
  if (core.references > 1) orphans().push_back(&core);
}

}  // namespace

void LenderCore::forked() noexcept {
  endpoint.forget();
  for (UniqueFd* const fd : {&epoll, &wake, &timer, &reserve}) *fd = {};
  for (auto& [id, connection] : connections) {
    connection->socket = {};
    connection->borrower.process = {};
  }
}

void drop_reference(LenderCore& core) noexcept {
  const Locked lock = lock_lending();
  if (--core.references != 0) return;
  forget_core(core);
  std::erase(orphans(), &core);
  delete &core;
}

void reap_orphans() noexcept {
  std::vector<LenderCore*> all;
  {
    const Locked lock = lock_lending();
    for (LenderCore* const core : orphans()) {
      if (core->of_parent) continue;
      ++core->references;
      all.push_back(core);
    }
  }
  for (LenderCore* const core : all) {
    {
      Locked lock = lock_lending();
      core->turn.try_once(lock, [&] { (void)dispatch_events(*core, Deadline::now()); });
    }
    drop_reference(*core);
  }
}

Result<void> LenderPolicy::close(const Session&, const Value& value) noexcept {
  close_endpoint(*value.core);
  drop_reference(*value.core);
  return {};
}

void LenderPolicy::abandon(const Value& value) noexcept {
  if (!value.core->of_parent) (void)close({}, value);
}

}  // namespace detail

Result<Lender> Lender::at(const Runtime& runtime, const Endpoint& endpoint, LenderOptions options) noexcept {
  const detail::Session& session = runtime.session();
  if (!session.alive()) return detail::unusable(session, Operation::open_lender);
  detail::reap_orphans();
  DEVSHARE_TRY(bound, detail::BoundEndpoint::bind(endpoint, options.borrowers.other_users()));
  auto* const core = new detail::LenderCore;
  core->session = session;
  core->options = options;
  core->endpoint = std::move(bound);
  core->references = 1;
  detail::register_core(*core);
  if (auto made = detail::make_descriptors(*core); !made) {
    detail::drop_reference(*core);
    return made.error();
  }
  return Lender(session, {core});
}

Result<std::uint64_t> Lender::publish(std::string_view name) const noexcept {
  if (!lender_.holds() || !lender_.session().alive()) return detail::unusable(lender_.session(), Operation::publish);
  detail::LenderCore& core = *lender_.value().core;
  const detail::Locked lock = detail::lock_lending();
  if (detail::OfferRecord* const offer = detail::find_offer(core, name); offer != nullptr) return detail::publish(*offer);
  return Error(Errc::no_such_offer, Operation::publish);
}

int Lender::native_handle() const noexcept {
  return lender_.holds() && lender_.session().alive() ? lender_.value().core->epoll.get() : -1;
}

Result<std::size_t> Lender::dispatch(Deadline deadline) & noexcept {
  if (!lender_.holds() || !lender_.session().alive()) return detail::unusable(lender_.session(), Operation::serve);
  detail::reap_orphans();
  detail::LenderCore& core = *lender_.value().core;
  std::size_t dealt_with = 0;
  {
    detail::Locked lock = detail::lock_lending();
    ++core.references;  // a hook may end the Lender
    core.turn.wait(
        lock, deadline, [&] { return dealt_with != 0; },
        [&](Deadline until) { dealt_with = detail::dispatch_events(core, until); });
  }
  detail::drop_reference(core);
  return dealt_with;
}

}  // namespace devshare
