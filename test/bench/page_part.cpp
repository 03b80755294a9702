// SPDX-License-Identifier: Apache-2.0
// 64 MiB of which both sides touch every page, in the machine's normal pages and in huge ones, with pages that come
// when they are touched and all at once. Huge pages are set aside for the time of it; where that cannot be, their rows
// are void.
#include "parts.hpp"
#include "rounds.hpp"
#include "share_driver.hpp"
#include "support/huge_pages.hpp"

#include <fmt/format.h>

#include <cstddef>
#include <cstring>
#include <memory>
#include <vector>

namespace devshare::bench {
namespace {

constexpr std::size_t size = std::size_t{64} << 20;
constexpr std::size_t shares = 1;  // in a turn
constexpr double most_in_huge_pages = 1.0 / 25;

constexpr const char* in_huge_pages = "64 MiB touched by both, huge pages / normal";
constexpr const char* huge_at_once = "64 MiB touched by both, huge pages, at once / normal";
constexpr const char* zeroed = "64 MiB set to zero once / touched by both in normal pages";
constexpr const char* at_once = "64 MiB touched by both, pages at once / when touched";

// What the kernel does with such memory before it gives it away, in whatever pages.
double zero_once() {
  static std::vector<std::byte> memory(size);
  return median_time(shares, [] {
    std::memset(memory.data(), 0, memory.size());
    asm volatile("" : : "r"(memory.data()) : "memory");
  });
}

}  // namespace

std::vector<Row> page_rows() {
  const test::HugePages pool(size / test::HugePages::bytes + 1);
  const bool huge_too = pool.why_not().empty();
  enum : std::uint32_t { normal, populated, huge, huge_populated };
  const ShareDriver driver([] {
    std::vector<std::unique_ptr<Way>> ways;
    ways.push_back(by_devshare_in({}));
    ways.push_back(by_devshare_in({.populate = true}));
    ways.push_back(by_devshare_in({.huge = true}));
    ways.push_back(by_devshare_in({.huge = true, .populate = true}));
    return ways;
  }());
  const auto contender = [&](const char* name, std::uint32_t way) {
    return Contender{fmt::format("{}, 64 MiB touched", name),
                     [&driver, way] { return driver.turn(way, size, shares); }};
  };
  std::vector<Contender> contenders{contender("normal pages", normal),
                                    contender("normal pages, again", normal),
                                    contender("normal pages at once", populated),
                                    {"64 MiB set to zero", zero_once}};
  if (huge_too) {
    contenders.push_back(contender("huge pages", huge));
    contenders.push_back(contender("huge pages at once", huge_populated));
  }
  const std::vector<Figures> figures = alternate(contenders);
  const Ratio control = ratio(figures[1], figures[0]);
  std::vector<Row> rows;
  if (huge_too) {
    rows.push_back(judge(in_huge_pages, figures[4], figures[0], Goal::at_most, most_in_huge_pages, control));
    rows.push_back(judge(huge_at_once, figures[5], figures[0], Goal::at_most, most_in_huge_pages, control));
  } else {
    rows.push_back(not_measured(in_huge_pages, pool.why_not()));
    rows.push_back(not_measured(huge_at_once, pool.why_not()));
  }
  const auto inform = [&](const char* measure, const Figures& of) {
    const Ratio measured = ratio(of, figures[0]);
    rows.push_back({measure, fmt::format("{:.2f} [{:.2f}..{:.2f}]", measured.value, measured.low, measured.high), "–",
                    Verdict::for_information, "as above"});
  };
  inform(zeroed, figures[3]);
  inform(at_once, figures[2]);
  return rows;
}

}  // namespace devshare::bench
