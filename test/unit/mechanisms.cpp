// SPDX-License-Identifier: Apache-2.0
// Sets of mechanisms, preferences among them, and the choice that exporter and importer make together: values, which
// need no runtime.
#include "support/catch.hpp"

#include <devshare/choose.hpp>
#include <devshare/explain.hpp>

#include <string_view>
#include <vector>

using namespace devshare;

namespace {

constexpr Mechanisms everything{Mechanism::by_key, Mechanism::v1, Mechanism::v2, Mechanism::fabric};

}  // namespace

TEST_CASE("a set of mechanisms travels in a message, and what its receiver does not know is dropped") {
  constexpr Mechanisms set{Mechanism::by_key, Mechanism::fabric};
  CHECK(Mechanisms::from_message(set.to_message()) == set);
  CHECK(Mechanisms::from_message(set.to_message() | 1U | 1U << 5 | 1U << 31) == set);
  CHECK(Mechanisms::from_message(0).empty());
  CHECK((set.contains(Mechanism::fabric) && !set.contains(Mechanism::v2)));
  CHECK((everything & set) == set);
  CHECK((Mechanisms{Mechanism::v1} & set).empty());
}

TEST_CASE("of all mechanisms the default prefers V2, then V1, then fabric, then a key") {
  Mechanisms left = everything;
  for (const Mechanism expected : {Mechanism::v2, Mechanism::v1, Mechanism::fabric, Mechanism::by_key}) {
    const auto first = Prefer{}.first_of(left);
    REQUIRE(first);
    CHECK(name_of(*first) == name_of(expected));
    left = left & Mechanisms::from_message(~Mechanisms{expected}.to_message());
  }
  CHECK_FALSE(Prefer{}.first_of(left));
}

TEST_CASE("a preference may come from a program's option; what it does not name is never chosen") {
  const std::vector<Mechanism> option{Mechanism::by_key, Mechanism::fabric};
  const Prefer prefer{std::span<const Mechanism>(option)};
  CHECK(prefer.first_of(everything) == Mechanism::by_key);
  CHECK(prefer.first_of({Mechanism::fabric, Mechanism::v2}) == Mechanism::fabric);
  CHECK_FALSE(prefer.first_of({Mechanism::v1, Mechanism::v2}));
  CHECK_FALSE(Prefer(std::span<const Mechanism>()).first_of(everything));
}

TEST_CASE("the choice is the best of what works here, is preferred and the importer has") {
  const auto chosen = choose(everything, {}, {Mechanism::v1, Mechanism::by_key});
  REQUIRE(chosen);
  CHECK(*chosen == Mechanism::v1);

  const auto refused = choose({Mechanism::by_key}, {}, {Mechanism::v1, Mechanism::v2});
  REQUIRE_FALSE(refused);
  CHECK(refused.error() == Errc::mechanism_mismatch);
  CHECK(refused.error().operation() == Operation::choose);
  CHECK(explain(refused.error()).summary.find("importer") != std::string_view::npos);
  CHECK_FALSE(choose(everything, {Mechanism::fabric}, {Mechanism::v2}));
}

TEST_CASE("from the value of a mechanism to its type") {
  for (const Mechanism each : all_mechanisms) {
    CHECK(with_mechanism(each, []<class K>(K) { return K::mechanism; }) == each);
  }
}
