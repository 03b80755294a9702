// SPDX-License-Identifier: Apache-2.0
// The cost of our headers is a promise: nobody pays for what he did not ask for by including the header that has it.
#include "header_cost.hpp"
#include "support/catch.hpp"

namespace test = devshare::test;

namespace {

constexpr long most_over_expected = 5'000;  // of a core header, over tl/expected.hpp alone: for other compilers

bool reads(const test::HeaderCost& cost, const std::string& ending) {
  for (const std::string& header : cost.headers) {
    if (header.ends_with(ending)) return true;
  }
  return false;
}

}  // namespace

TEST_CASE("a core header reads little more than tl::expected does") {
  const int version = test::gxx_version();
  if (version == 0) DEVSHARE_SKIP("no g++ to count with");
  const test::HeaderCost expected = test::cost_of_including({"tl/expected.hpp"}, true);
  INFO(expected.problem);
  REQUIRE(expected.lines > 0);
  for (const char* header : {"devshare/memory.hpp", "devshare/exported.hpp", "devshare/imported.hpp"}) {
    const test::HeaderCost cost = test::cost_of_including({header}, true);
    INFO(header << " with g++ " << version << ": " << cost.lines << " lines " << cost.problem);
    CHECK(cost.lines > expected.lines);
    CHECK(cost.lines - expected.lines <= most_over_expected);
  }
}

TEST_CASE("a header stays under its bounds of preprocessed lines and of the compiler's memory") {
  const int version = test::gxx_version();
  if (version == 0) DEVSHARE_SKIP("no g++ to count with");
  if (version != 12) DEVSHARE_SKIP("the bounds are for g++ 12, this is " + std::to_string(version));
  for (const test::HeaderBound& bound : test::header_bounds) {
    const test::HeaderCost cost = test::cost_of_including({bound.name});
    INFO(bound.name << ": " << cost.lines << " lines, " << cost.peak_mib << " MiB " << cost.problem);
    CHECK(cost.lines > 0);
    CHECK(cost.lines <= bound.most_lines);
    CHECK(cost.peak_mib > 0);
    CHECK(cost.peak_mib <= bound.most_mib * 1.01);
  }
}

TEST_CASE("the umbrella header brings no header that it is not asked for") {
  if (test::gxx_version() == 0) DEVSHARE_SKIP("no g++ to ask");
  const test::HeaderCost cost = test::cost_of_including({"devshare/devshare.hpp"}, true);
  INFO(cost.problem);
  REQUIRE(reads(cost, "devshare/imported.hpp"));
  for (const char* unwanted : {"/chrono", "/filesystem", "/iostream", "/thread", "/mutex", "/string", "/memory", "/atomic",
                               "fmt/core.h", "fmt/format.h", "devshare/format.hpp", "devshare/host.hpp"}) {
    INFO(unwanted);
    CHECK_FALSE(reads(cost, unwanted));
  }
}
