// SPDX-License-Identifier: Apache-2.0
// The table that a run of the benchmarks prints.
#pragma once

#include <string>
#include <vector>

namespace devshare::bench {

enum class Verdict { met, missed, not_valid, for_information };

struct Row {
  std::string measure;
  std::string value;
  std::string goal;
  Verdict verdict = Verdict::for_information;
  std::string control;  // the A/A ratio and its range over the rounds, or "exact"
};

// The row of something that could not be measured: void, with the first line of the reason.
Row not_measured(std::string measure, const std::string& why);

std::string in_words(Verdict verdict);

// Rows travel from the process that measured them to the one that prints, a line each.
std::string to_line(const Row& row);
Row from_line(const std::string& line);

// A table in Markdown, with the columns in line.
std::string to_markdown(const std::vector<Row>& rows);

}  // namespace devshare::bench
