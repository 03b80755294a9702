// SPDX-License-Identifier: Apache-2.0
// Every number that an error can hold has a name of its own. The loops go to the last enumerator and look one further,
// so that an enumerator added behind it cannot be forgotten here.
#include "support/catch.hpp"

#include <devshare/explain.hpp>

#include <set>
#include <string>
#include <string_view>

using namespace devshare;

namespace {

// Names from `first` to `last`, each checked to be known and new.
template <class Enum>
void expect_names(Enum first, Enum last) {
  std::set<std::string_view> seen;
  for (int number = static_cast<int>(first); number <= static_cast<int>(last); ++number) {
    INFO("number " << number);
    const std::string_view name = name_of(static_cast<Enum>(number));
    CHECK(name != "unknown");
    CHECK_FALSE(name.empty());
    CHECK(seen.insert(name).second);
  }
  CHECK(name_of(static_cast<Enum>(static_cast<int>(last) + 1)) == "unknown");
}

}  // namespace

TEST_CASE("every kind of failure has a name of its own") {
  expect_names(Errc::invalid_argument, Errc::refused);
  CHECK(name_of(Errc{}) == "unknown");  // 0 is no failure
  CHECK(name_of(Errc::stale_token) == "stale_token");
}

TEST_CASE("every operation has a name of its own, in words that follow `cannot`") {
  expect_names(Operation::none, Operation::use_mapping);
  CHECK(name_of(Operation::import_key) == "import memory by key");
}

TEST_CASE("every reason has a name of its own") {
  expect_names(Error::Reason::none, detail::last_reason);
  CHECK(name_of(Error::Reason::not_admitted) == "not_admitted");
}

TEST_CASE("every mechanism has a name of its own") {
  expect_names(Mechanism::by_key, Mechanism::fabric);
  CHECK(name_of(Mechanism{}) == "unknown");  // 0 is no mechanism
  CHECK(name_of(Mechanism::v2) == "v2");
}

TEST_CASE("every ACL entry is called what its vendor calls it") {
  std::set<std::string_view> seen;
  for (std::size_t number = 0; number < acl::entry_count; ++number) {
    const std::string_view name = name_of(static_cast<acl::Entry>(number));
    INFO(name);
    CHECK(name.substr(0, 3) == "acl");
    CHECK(seen.insert(name).second);
  }
  CHECK(name_of(acl::Entry::none) == "no call");
  CHECK(name_of(acl::Entry::aclrtIpcMemImportByKey) == "aclrtIpcMemImportByKey");
}

TEST_CASE("every ACL code is called what its vendor calls it, and no two share a number") {
  std::set<std::string_view> seen;
#define DEVSHARE_EXPECT_NAME(name, value, text)                                                    \
  CHECK(name_of_acl_code(value) == (value == 0 ? std::string("ACL_SUCCESS") : "ACL_ERROR_" text)); \
  CHECK(seen.insert(name_of_acl_code(value)).second);
  DEVSHARE_ACL_CODES(DEVSHARE_EXPECT_NAME)
#undef DEVSHARE_EXPECT_NAME
  CHECK(name_of_acl_code(507899) == "ACL_ERROR_RT_DRV_INTERNAL_ERROR");
  CHECK(name_of_acl_code(1).empty());
  CHECK(name_of_acl_code(-1).empty());
}
