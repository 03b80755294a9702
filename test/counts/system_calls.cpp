// SPDX-License-Identifier: Apache-2.0
// System calls of a whole share, on both sides together: allocate, export, admit, import, first and last byte on each
// side, close, free. Exact, and so are the ways to spend none: a second key from the same process makes no connection,
// a second import of a live key reaches nobody.
#include "share_calls.hpp"
#include "support/catch.hpp"
#include "support/child.hpp"
#include "traced.hpp"

#include <devshare/devshare.hpp>
#include <devshare/host.hpp>

#include <utility>

namespace bench = devshare::bench;
namespace test = devshare::test;
using test::demand;

namespace {

void check_share(test::MakeWay by, bench::Touch touch, long most_calls) {
  if (const std::string why = test::why_no_counting(); !why.empty()) DEVSHARE_SKIP(why);
  const auto [shares, counted] = test::calls_of_shares(by, touch);
  INFO(counted.problem << "\nin " << shares << " shares:\n" << counted.in_words());
  REQUIRE(counted.problem.empty());
  CHECK(counted.named("memfd_create") == shares);  // what was counted are shares
  CHECK(counted.named("sendmsg") == shares);  // ahead: nobody asks
  CHECK(counted.named("recvmsg") == shares);
  CHECK(counted.total() <= most_calls * shares);
  CHECK(counted.named("socket") == 0);
  CHECK(counted.named("connect") == 0);
  CHECK(counted.named("accept4") == 0);
}

}  // namespace

TEST_CASE("a whole share makes at most 15 system calls, admission included, two less than by hand") {
  check_share(bench::by_devshare, bench::Touch::copies, 15);
  check_share(bench::by_devshare, bench::Touch::views, 15);
}

TEST_CASE("a whole share by handle makes at most 16 system calls, one less than by hand") {
  check_share(bench::by_devshare_handles, bench::Touch::copies, 16);
  check_share(bench::by_devshare_handles, bench::Touch::views, 16);
}

TEST_CASE("a second key from the same process opens no connection") {
  if (const std::string why = test::why_no_counting(); !why.empty()) DEVSHARE_SKIP(why);
  const test::CountedCalls counted = test::calls_beside_an_import([](const auto& device, const auto&, const auto& second) {
    test::begin_counting();
    const auto open = devshare::ImportedMapping::open(second, device);
    test::end_counting();
    demand(static_cast<bool>(open), "imports the second key");
    demand(devshare::host::counters().keys_imported == 2, "has two keys");
    demand(devshare::host::counters().connections == 1, "and one connection");
  });
  INFO(counted.problem << "\n" << counted.in_words());
  REQUIRE(counted.problem.empty());
  CHECK(counted.named("socket") == 0);
  CHECK(counted.named("connect") == 0);
  CHECK(counted.named("accept4") == 0);
  CHECK(counted.named("sendmsg") == 2);  // the request and its reply, so that something was counted
}

TEST_CASE("a further import of a live key makes no system call and no call of the runtime's import") {
  if (const std::string why = test::why_no_counting(); !why.empty()) DEVSHARE_SKIP(why);
  const test::CountedCalls counted = test::calls_beside_an_import([](const auto& device, const auto& first, const auto&) {
    devshare::host::record_calls(true);
    test::begin_counting();
    for (int i = 0; i < 100; ++i) {
      auto again = devshare::ImportedMapping::open(first, device);
      demand(static_cast<bool>(again), "imports again");
      auto mapping = *std::move(again);
      demand(static_cast<bool>(std::move(mapping).close()), "closes again");
    }
    test::end_counting();
    for (const auto& call : devshare::host::recorded_calls()) {
      demand(call.call != devshare::acl::Entry::aclrtIpcMemImportByKey, "the runtime imported again");
      demand(call.call != devshare::acl::Entry::aclrtIpcMemClose, "the runtime closed");
    }
    demand(devshare::host::counters().key_opens == 1, "one import of the runtime");
  });
  INFO(counted.problem << "\n" << counted.in_words());
  REQUIRE(counted.problem.empty());
  CHECK(counted.total() == 0);
}
