// SPDX-License-Identifier: Apache-2.0
// System calls of a whole share, on both sides together: allocate, export, admit, import, first and last byte on each
// side, close, free. Exact, and so are the ways to spend none: a second key from the same process makes no connection,
// a second import of a live key reaches nobody.
#include "bench/way.hpp"
#include "support/catch.hpp"
#include "support/child.hpp"
#include "traced.hpp"

#include <devshare/devshare.hpp>
#include <devshare/host.hpp>

#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <utility>

namespace bench = devshare::bench;
namespace test = devshare::test;
using test::demand;

namespace {

constexpr long most_calls_of_a_share = 21;
constexpr int shares = 200;   // counted, so that a call that is made only now and then counts too
constexpr int warm_up = 3;
constexpr std::size_t size = 2 << 20;

// The two processes of a share and the line between them, which is not counted.
struct Line {
  int exporter = -1;
  int importer = -1;

  Line() {
    int ends[2];
    demand(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) == 0, "a socket pair");
    exporter = test::as_uncounted(ends[0]);
    importer = test::as_uncounted(ends[1]);
    demand(exporter >= 0 && importer >= 0, "descriptors of 900 and more");
  }
};

template <class T>
void send(int line, const T& value) {
  demand(::send(line, &value, sizeof(value), MSG_NOSIGNAL) == sizeof(value), "sends");
}
template <class T>
bool receive(int line, T* value) {
  return ::recv(line, value, sizeof(*value), 0) == sizeof(*value);
}

// A and B on both ends of a line: `a` runs in this process, `b` in a child, until both return. B introduces itself first.
void in_two_processes(bench::Way& way, const std::function<void(int line)>& a, const std::function<void(int line)>& b) {
  ::prctl(PR_SET_NAME, "A");
  const Line line;
  const pid_t importer = ::fork();
  demand(importer >= 0, "forks");
  if (importer == 0) {
    ::prctl(PR_SET_NAME, "B");
    ::close(line.exporter);
    send(line.importer, way.introduce());
    b(line.importer);
    ::_exit(0);
  }
  ::close(line.importer);
  std::int32_t pid = 0;
  demand(receive(line.exporter, &pid), "B introduces itself");
  way.meet(pid);
  a(line.exporter);
  ::close(line.exporter);
  int status = 0;
  demand(::waitpid(importer, &status, 0) == importer && status == 0, "B ends well");
}

void wait_for_answer(int line) {
  char done = 0;
  demand(receive(line, &done), "B has done its part");
}

void share_once(bench::Way& way, int line) {
  send(line, way.share(size));
  wait_for_answer(line);
  way.end();
}

test::CountedCalls calls_of_shares(bench::Touch touch) {
  return test::count_calls([touch] {
    const auto way = bench::by_devshare(touch);
    const auto exporter = [&way](int line) {
      for (int i = 0; i < warm_up; ++i) share_once(*way, line);
      test::begin_counting();
      for (int i = 0; i < shares; ++i) share_once(*way, line);
      test::end_counting();
    };
    const auto importer = [&way](int line) {
      for (bench::Message message; receive(line, &message);) {
        way->use(message, size);
        send(line, 'k');
      }
    };
    in_two_processes(*way, exporter, importer);
  });
}

// B opens the first of two keys, then does what is counted while that is open.
using Part = std::function<void(const devshare::Device&, const devshare::ReceivedTicket& first,
                                const devshare::ReceivedTicket& second)>;
test::CountedCalls calls_beside_an_import(const Part& part) {
  return test::count_calls([&part] {
    const auto way = bench::by_devshare(bench::Touch::copies);
    const auto exporter = [&way](int line) {
      send(line, way->share(size));
      send(line, way->share(size));
      wait_for_answer(line);
      way->end();
    };
    const auto importer = [&part](int line) {
      const auto device = devshare::Runtime::open().value().device(devshare::DeviceId{0}).value();
      bench::Message messages[2];
      for (auto& message : messages) demand(receive(line, &message), "a ticket");
      const auto first = devshare::ReceivedTicket::decode(messages[0]).value();
      const auto second = devshare::ReceivedTicket::decode(messages[1]).value();
      {
        const auto open = devshare::ImportedMapping::open(first, device).value();
        part(device, first, second);
      }
      send(line, 'k');
    };
    in_two_processes(*way, exporter, importer);
  });
}

void check_share(bench::Touch touch) {
  if (const std::string why = test::why_no_counting(); !why.empty()) DEVSHARE_SKIP(why);
  const test::CountedCalls counted = calls_of_shares(touch);
  INFO(counted.problem << "\nin " << shares << " shares:\n" << counted.in_words());
  REQUIRE(counted.problem.empty());
  CHECK(counted.named("memfd_create") == shares);  // what was counted are shares
  CHECK(counted.named("sendmsg") == 2 * shares);
  CHECK(counted.named("recvmsg") == 2 * shares);
  CHECK(counted.total() <= most_calls_of_a_share * shares);
  CHECK(counted.named("socket") == 0);
  CHECK(counted.named("connect") == 0);
  CHECK(counted.named("accept4") == 0);
}

}  // namespace

TEST_CASE("a whole share by copies makes at most 21 system calls, admission included") {
  check_share(bench::Touch::copies);
}

TEST_CASE("a whole share through views makes at most 21 system calls, admission included") {
  check_share(bench::Touch::views);
}

TEST_CASE("a second key from the same process opens no connection") {
  if (const std::string why = test::why_no_counting(); !why.empty()) DEVSHARE_SKIP(why);
  const test::CountedCalls counted = calls_beside_an_import([](const auto& device, const auto&, const auto& second) {
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
  const test::CountedCalls counted = calls_beside_an_import([](const auto& device, const auto& first, const auto&) {
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
