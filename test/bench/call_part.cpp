// SPDX-License-Identifier: Apache-2.0
#include "counts/call_cost.hpp"
#include "parts.hpp"

#include <fmt/format.h>

namespace devshare::bench {

std::vector<Row> call_rows() {
  if (const std::string why = test::why_no_call_costs(); !why.empty()) {
    return {not_measured("instructions of a wrapped call", why)};
  }
  const test::CallCosts costs = test::measure_call_costs();
  if (!costs.problem.empty()) {
    return {not_measured("instructions of a wrapped call", costs.problem)};
  }
  std::vector<Row> rows;
  for (const test::CallCost& cost : costs.cases) {
    const long limit = cost.failing ? 50 : 10 * cost.table_calls;
    const bool judged = cost.failing || cost.inlined;
    const bool met = cost.over() <= limit && cost.allocations == 0;
    rows.push_back({fmt::format("instructions of {} over its {} call{}", cost.name, cost.table_calls,
                                cost.table_calls == 1 ? "" : "s"),
                    fmt::format("{} ({} by hand)", cost.over(), cost.by_hand),
                    judged ? fmt::format("≤ {}{}", limit, cost.failing ? ", no allocation" : "") : "–",
                    !judged ? Verdict::for_information
                    : met   ? Verdict::met
                            : Verdict::missed,
                    "exact"});
  }
  return rows;
}

}  // namespace devshare::bench
