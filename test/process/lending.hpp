// SPDX-License-Identifier: Apache-2.0
// What the stories of lending have in common.
#pragma once

#include "support/sharing.hpp"
#include "support/soon.hpp"

#include <algorithm>
#include <chrono>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace devshare::test {

using namespace std::chrono_literals;

// What a lender on a busy machine has answered by. Who asks for what is not offered waits as long.
inline constexpr std::chrono::milliseconds time_to_answer = 500ms;

// What a lender's hook was told.
class Told {
 public:
  struct Event {
    LendingEvent::Kind kind{};
    std::string offer;
    Holder holder;
    Errc error{};
    std::int64_t moment = 0;  // CLOCK_MONOTONIC
  };

  LenderOptions options(Allow borrowers = Allow::same_user()) { return {.borrowers = borrowers, .hook = &hook, .user = this}; }

  std::size_t count(LendingEvent::Kind kind) const {
    const std::lock_guard lock(mutex_);
    return static_cast<std::size_t>(
        std::count_if(events_.begin(), events_.end(), [&](const Event& event) { return event.kind == kind; }));
  }
  // The errors of events of a kind.
  std::vector<Errc> errors(LendingEvent::Kind kind) const {
    const std::lock_guard lock(mutex_);
    std::vector<Errc> all;
    for (const Event& event : events_) {
      if (event.kind == kind) all.push_back(event.error);
    }
    return all;
  }
  // The last of a kind; where there was none, one of no moment.
  Event last(LendingEvent::Kind kind) const {
    const std::lock_guard lock(mutex_);
    const auto found =
        std::find_if(events_.rbegin(), events_.rend(), [&](const Event& event) { return event.kind == kind; });
    return found == events_.rend() ? Event{} : *found;
  }

 private:
  static void hook(const LendingEvent& event, void* self) {
    Told& told = *static_cast<Told*>(self);
    const std::lock_guard lock(told.mutex_);
    told.events_.push_back(
        {event.kind, std::string(event.offer), event.holder, event.error.kind(), detail::monotonic_now()});
  }

  mutable std::mutex mutex_;
  std::vector<Event> events_;
};

using Kind = LendingEvent::Kind;

// Whether a result is the refusal that was expected, of whatever type.
template <class R>
void refused_as(Actor& me, const R& result, Errc expected, std::string_view sentence, const char* file = __builtin_FILE(),
                int line = __builtin_LINE()) {
  if (result) {
    me.expect(false, fmt::format("{}, but it was not refused", sentence), file, line);
    return;
  }
  const Error& error = detail::plain_error(result.error());
  me.expect(error.kind() == expected, fmt::format("{}: {}", sentence, error), file, line);
}

}  // namespace devshare::test
