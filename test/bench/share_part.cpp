// SPDX-License-Identifier: Apache-2.0
// A whole share: A makes memory, touches its ends, publishes it and tells B; B opens it, touches its ends, closes it
// and answers; A ends it. The message and the answer are the same for all ways.
#include "by_hand/by_hand.hpp"
#include "counts/share_calls.hpp"
#include "parts.hpp"
#include "rounds.hpp"
#include "share_driver.hpp"

#include <fmt/format.h>

#include <memory>
#include <vector>

namespace devshare::bench {
namespace {

struct Size {
  const char* name;
  std::size_t bytes;
  double over_boost;  // the goal
};
constexpr Size sizes[] = {
    {"4 KiB", 4 << 10, 1.45},
    {"2 MiB", 2 << 20, 1.0},
    {"64 MiB", 64 << 20, 1.0},
    {"1 GiB", std::size_t{1} << 30, 1.0},
};

enum WayNumber : std::uint32_t { hand_copies, devshare_copies, hand_views, devshare_views, boost };

Row row(const Size& size, const char* measure, const Figures& ours, const Figures& theirs, const Figures& again,
        double limit) {
  return judge(fmt::format("share of {}, {}", size.name, measure), ours, theirs, Goal::at_most, limit,
               ratio(again, theirs));
}

void measure(const ShareDriver& driver, const Size& size, std::vector<Row>* rows) {
  const auto contender = [&](const char* name, WayNumber way) {
    return driver.contender(fmt::format("{}, {}", name, size.name), way, size.bytes);
  };
  const std::vector<Figures> copies = alternate(
      {
          contender("by hand, copies", hand_copies),
          contender("by hand, copies, again", hand_copies),
          contender("devshare, copies", devshare_copies),
          contender("boost", boost),
          contender("boost, again", boost),
      },
      turns_with_copies);
  const std::vector<Figures> views = alternate(
      {
          contender("by hand, views", hand_views),
          contender("by hand, views, again", hand_views),
          contender("devshare, views", devshare_views),
      },
      turns_with_views);
  rows->push_back(row(size, "copies / by hand", copies[2], copies[0], copies[1], 1.10));
  rows->push_back(row(size, "views / by hand", views[2], views[0], views[1], 1.10));
  rows->push_back(row(size, "copies / Boost", copies[2], copies[3], copies[4], size.over_boost));
  // What is possible at all for somebody who asks who it is.
  const Ratio limit = ratio(copies[0], copies[3]);
  rows->push_back({fmt::format("share of {}, copies by hand / Boost", size.name), fmt::format("{:.2f}", limit.value),
                   "–", Verdict::for_information, "as above"});
}

void count_calls_of_a_share(std::vector<Row>* rows) {
  constexpr double most = 21;
  for (const Touch touch : {Touch::copies, Touch::views}) {
    const std::string measure = fmt::format("system calls of a share, {}", touch == Touch::copies ? "copies" : "views");
    const std::string why_not = test::why_no_counting();
    if (!why_not.empty()) {
      rows->push_back(not_measured(measure, why_not));
      continue;
    }
    const test::CallsOfShares counted = test::calls_of_shares(by_devshare, touch);
    if (!counted.calls.problem.empty()) give_up(counted.calls.problem);
    const double each = static_cast<double>(counted.calls.total()) / counted.shares;
    rows->push_back({measure, fmt::format("{}", each), fmt::format("≤ {}", most),
                     each <= most ? Verdict::met : Verdict::missed, "exact"});
  }
}

}  // namespace

std::vector<Row> share_rows() {
  std::vector<Row> rows;
  count_calls_of_a_share(&rows);
  const ShareDriver driver([] {
    std::vector<std::unique_ptr<Way>> ways;
    ways.push_back(by_hand(Touch::copies));
    ways.push_back(by_devshare(Touch::copies));
    ways.push_back(by_hand(Touch::views));
    ways.push_back(by_devshare(Touch::views));
    ways.push_back(by_boost());
    return ways;
  }());
  for (const Size& size : sizes) measure(driver, size, &rows);
  return rows;
}

}  // namespace devshare::bench
