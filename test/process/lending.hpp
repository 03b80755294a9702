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

// What a lender's hook was told.
class Told {
 public:
  LenderOptions options(Allow borrowers = Allow::same_user()) { return {.borrowers = borrowers, .hook = &hook, .user = this}; }

  std::size_t count(LendingEvent::Kind kind) const {
    const std::lock_guard lock(mutex_);
    return static_cast<std::size_t>(
        std::count_if(events_.begin(), events_.end(), [&](const auto& event) { return event.first == kind; }));
  }
  // The errors of events of a kind.
  std::vector<Errc> errors(LendingEvent::Kind kind) const {
    const std::lock_guard lock(mutex_);
    std::vector<Errc> all;
    for (const auto& [of, error] : events_) {
      if (of == kind) all.push_back(error);
    }
    return all;
  }

 private:
  static void hook(const LendingEvent& event, void* self) {
    Told& told = *static_cast<Told*>(self);
    const std::lock_guard lock(told.mutex_);
    told.events_.emplace_back(event.kind, event.error.kind());
  }

  mutable std::mutex mutex_;
  std::vector<std::pair<LendingEvent::Kind, Errc>> events_;
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
