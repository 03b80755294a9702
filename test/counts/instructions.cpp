// SPDX-License-Identifier: Apache-2.0
// What the wrapper costs in instructions, over the ACL calls it makes: exact, so that a test can hold it.
#include "call_cost.hpp"
#include "support/catch.hpp"

namespace test = devshare::test;

namespace {

constexpr long most_for_a_call = 10;     // inline, for each call through the table
constexpr long most_for_a_failure = 50;  // with its Error made

}  // namespace

TEST_CASE("a wrapped call costs ten instructions more than the bare one, a failing one fifty and no allocation") {
  if (const std::string why = test::why_no_call_costs(); !why.empty()) DEVSHARE_SKIP(why);
  const test::CallCosts costs = test::measure_call_costs();
  INFO(costs.problem);
  REQUIRE_FALSE(costs.cases.empty());
  for (const test::CallCost& cost : costs.cases) {
    INFO(cost.name << ": " << cost.wrapped << " instructions, by hand " << cost.by_hand << ", " << cost.table_calls
                   << " calls through the table, " << cost.allocations << " allocations");
    CHECK(cost.by_hand >= 5 * cost.table_calls);  // that something was measured at all
    CHECK(cost.allocations == 0);
    if (cost.failing) {
      CHECK(cost.over() <= most_for_a_failure);
    } else if (cost.inlined) {
      CHECK(cost.over() <= most_for_a_call * cost.table_calls);
    }
  }
}
