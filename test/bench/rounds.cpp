// SPDX-License-Identifier: Apache-2.0
#include "rounds.hpp"

#include "quiet.hpp"

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <numeric>
#include <utility>

namespace devshare::bench {

Options options;

namespace {

constexpr double most_by_others = 0.15;  // of one processor, during a round that counts
constexpr double quiet_enough = 0.08;    // before a round begins
constexpr double least_control = 0.95;
constexpr double most_control = 1.05;

double patience_used = 0;
std::vector<double> others_in_rounds;

std::string number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, value < 0.1 ? "%.4f" : "%.2f", value);
  return text;
}

std::string in_words(const Ratio& ratio) {
  return number(ratio.value) + " [" + number(ratio.low) + ".." + number(ratio.high) + "]";
}

}  // namespace

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 != 0 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

double now_ns() {
  timespec time{};
  ::clock_gettime(CLOCK_MONOTONIC, &time);
  return 1e9 * static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec);
}

double median_time(std::size_t steps, const std::function<void()>& step) {
  std::vector<double> times;
  for (std::size_t i = 0; i < steps; ++i) {
    const double begin = now_ns();
    step();
    times.push_back(now_ns() - begin);
  }
  return median(std::move(times));
}

std::vector<Figures> alternate(const std::vector<Contender>& contenders, int turns) {
  std::vector<Figures> figures(contenders.size());
  std::vector<std::size_t> order(contenders.size());
  std::iota(order.begin(), order.end(), 0);
  for (const std::size_t i : order) contenders[i].turn();  // warms up; not counted
  for (int done = 0; done < options.rounds;) {
    // A round that somebody else disturbed does not count, for anybody and whatever its figures, while patience lasts.
    const bool patient = patience_used < options.patience_s;
    if (patient) patience_used += wait_for_quiet(quiet_enough, options.patience_s - patience_used);
    const Usage before = usage();
    std::vector<Figures> round(contenders.size());
    for (int turn = 0; turn < turns; ++turn) {
      for (const std::size_t i : order) round[i].push_back(contenders[i].turn());
      std::reverse(order.begin(), order.end());  // nobody always comes after the same one
    }
    const Usage after = usage();
    const double others = used_by_others(before, after);
    if (patient && others > most_by_others) {
      patience_used += after.at - before.at;
      continue;
    }
    others_in_rounds.push_back(others);
    for (const std::size_t i : order) figures[i].push_back(median(std::move(round[i])));
    ++done;
  }
  for (std::size_t i = 0; i < contenders.size(); ++i) {
    std::fprintf(stderr, "  %-36s median %14.2f  [%.2f..%.2f]\n", contenders[i].name.c_str(), median(figures[i]),
                 *std::min_element(figures[i].begin(), figures[i].end()),
                 *std::max_element(figures[i].begin(), figures[i].end()));
  }
  return figures;
}

Ratio ratio(const Figures& of, const Figures& to) {
  Ratio result{median(of) / median(to), 0, 0};
  for (std::size_t i = 0; i < of.size(); ++i) {
    const double one = of[i] / to[i];
    result.low = i == 0 ? one : std::min(result.low, one);
    result.high = i == 0 ? one : std::max(result.high, one);
  }
  return result;
}

Row judge(std::string measure, const Figures& of, const Figures& to, Goal goal, double limit, Ratio control,
          std::string unit_note) {
  const Ratio measured = ratio(of, to);
  const bool reached = goal == Goal::at_most ? measured.value <= limit : measured.value >= limit;
  const bool valid = control.low >= least_control && control.high <= most_control;
  return {std::move(measure), in_words(measured) + std::move(unit_note),
          (goal == Goal::at_most ? "≤ " : "≥ ") + number(limit),
          !valid    ? Verdict::not_valid
          : reached ? Verdict::met
                    : Verdict::missed,
          in_words(control)};
}

Row out_of_reach(Row row) {
  row.verdict = Verdict::not_valid;
  return row;
}

double others_used() { return median(others_in_rounds); }

}  // namespace devshare::bench
