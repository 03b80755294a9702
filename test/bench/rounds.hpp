// SPDX-License-Identifier: Apache-2.0
// Measuring by ratio: contenders take turns, several times in a round, so that whatever the machine does meets all of them
// alike, and one of them runs under two names. Where the control does not come out as 1, no ratio of that run is worth
// anything.
#pragma once

#include "table.hpp"

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

namespace devshare::bench {

struct Contender {
  std::string name;
  std::function<double()> turn;  // runs for a few milliseconds and returns its figure
};

// The figures of each contender, one a round: the median of its turns.
using Figures = std::vector<double>;
std::vector<Figures> alternate(const std::vector<Contender>& contenders, int turns = 24);  // of each, in a round

struct Ratio {
  double value = 0;  // of the medians over all rounds
  double low = 0;    // of a single round, the least and the greatest
  double high = 0;
};
Ratio ratio(const Figures& of, const Figures& to);

enum class Goal { at_most, at_least };

// A row of the table: `of` in `to`, against its goal, with the ratio of the control: the same contender under two names.
Row judge(std::string measure, const Figures& of, const Figures& to, Goal goal, double limit, Ratio control,
          std::string unit_note = {});

// The same row where the machine cannot reach the goal, whoever tries: void, whatever was measured.
Row out_of_reach(Row row);

double median(std::vector<double> values);

// The time of `steps` in nanoseconds, one by one, and its median.
double median_time(std::size_t steps, const std::function<void()>& step);
double now_ns();

struct Options {
  int rounds = 12;
  double patience_s = 300;  // to wait for a machine that nobody else uses, over all rounds of a part
};
extern Options options;

// What others used of the processors while the rounds ran, as a share of one; for the report.
double others_used();

}  // namespace devshare::bench
