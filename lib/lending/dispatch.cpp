// SPDX-License-Identifier: Apache-2.0
// The dispatcher: the loop over what is ready.
#include "dispatcher.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <vector>

#include <sys/epoll.h>
#include <unistd.h>

namespace devshare::detail {
namespace {

// Who never stops talking keeps nobody from their turn: after so many rounds of events whoever waits looks at its deadline.
constexpr std::size_t most_rounds = 64;

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

}  // namespace

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

void wake_dispatcher(LenderCore& core) noexcept {
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written = ::write(core.wake.get(), &one, sizeof one);
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
