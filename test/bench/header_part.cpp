// SPDX-License-Identifier: Apache-2.0
#include "counts/header_cost.hpp"
#include "parts.hpp"

#include <fmt/format.h>

namespace devshare::bench {

std::vector<Row> header_rows() {
  std::vector<Row> rows;
  for (const test::HeaderBound& header : test::header_bounds) {
    const test::HeaderCost cost = test::cost_of_including({header.name});
    if (!cost.problem.empty()) {
      rows.push_back(not_measured(header.name, cost.problem));
      continue;
    }
    rows.push_back({fmt::format("{}, preprocessed lines", header.name), fmt::format("{}", cost.lines),
                    fmt::format("≤ {}", header.most_lines),
                    cost.lines <= header.most_lines ? Verdict::met : Verdict::missed, "exact"});
    rows.push_back({fmt::format("{}, MiB to compile", header.name), fmt::format("{:.1f}", cost.peak_mib),
                    fmt::format("≤ {}", header.most_mib),
                    cost.peak_mib <= header.most_mib ? Verdict::met : Verdict::missed, "exact to 1 %"});
  }
  return rows;
}

}  // namespace devshare::bench
