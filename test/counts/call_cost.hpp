// SPDX-License-Identifier: Apache-2.0
// Instructions of a wrapped call against the same ACL calls by hand, over a library whose calls do nothing: exact, by
// callgrind.
#pragma once

#include <string>
#include <vector>

namespace devshare::test {

struct CallCost {
  std::string name;        // of the case
  int table_calls = 0;     // that one of it makes
  bool inlined = true;     // the whole of it is in a header
  bool failing = false;
  long by_hand = 0;        // instructions, one repetition, loop included
  long wrapped = 0;
  long allocations = 0;    // by the wrapped one, all repetitions together

  long over() const { return wrapped - by_hand; }
};

struct CallCosts {
  std::string problem;  // why there are none
  std::vector<CallCost> cases;
};

CallCosts measure_call_costs();

// Why this build cannot: no valgrind, a sanitizer, or an optimiser that was told not to. "" when it can.
std::string why_no_call_costs();

}  // namespace devshare::test
