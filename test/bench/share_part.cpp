// SPDX-License-Identifier: Apache-2.0
// A whole share: A makes memory, touches its ends, publishes it and tells B; B opens it, touches its ends, closes it and
// answers; A ends it. The message and the answer are the same for all ways.
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
  std::size_t shares;  // in a turn
  double over_boost;   // the goal
};
constexpr Size sizes[] = {
    {"4 KiB", 4 << 10, 100, 1.45},
    {"2 MiB", 2 << 20, 80, 1.0},
    {"64 MiB", 64 << 20, 80, 1.0},
    {"1 GiB", std::size_t{1} << 30, 60, 1.0},
};

enum WayNumber : std::uint32_t { hand_copies, devshare_copies, hand_views, devshare_views, boost };

void measure(const ShareDriver& driver, const Size& size, std::vector<Row>* rows) {
  const auto contender = [&](const char* name, WayNumber way) {
    return Contender{fmt::format("{}, {}", name, size.name), [&driver, &size, way] { return driver.turn(way, size.bytes, size.shares); }};
  };
  const std::vector<Figures> figures = alternate({
      contender("by hand, copies", hand_copies),
      contender("by hand, copies, again", hand_copies),
      contender("devshare, copies", devshare_copies),
      contender("by hand, views", hand_views),
      contender("by hand, views, again", hand_views),
      contender("devshare, views", devshare_views),
      contender("boost", boost),
      contender("boost, again", boost),
  });
  const auto row = [&](const char* measure, const Figures& ours, std::size_t peer, double limit) {
    const Ratio control = ratio(figures[peer + 1], figures[peer]);
    rows->push_back(judge(fmt::format("share of {}, {}", size.name, measure), ours, figures[peer], Goal::at_most, limit,
                          control));
  };
  row("copies / by hand", figures[2], 0, 1.10);
  row("views / by hand", figures[5], 3, 1.10);
  row("copies / Boost", figures[2], 6, size.over_boost);
  // What is possible at all for somebody who asks who it is.
  const Ratio limit = ratio(figures[0], figures[6]);
  rows->push_back({fmt::format("share of {}, copies by hand / Boost", size.name), fmt::format("{:.2f}", limit.value), "–",
                   Verdict::for_information, "as above"});
}

void count_calls_of_a_share(std::vector<Row>* rows) {
  constexpr double most = 21;
  for (const Touch touch : {Touch::copies, Touch::views}) {
    const std::string measure =
        fmt::format("system calls of a share, {}", touch == Touch::copies ? "copies" : "views");
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
