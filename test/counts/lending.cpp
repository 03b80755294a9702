// SPDX-License-Identifier: Apache-2.0
// What lending costs beyond the runtime's own work, exactly: system calls of a borrow, memory of a lease, threads, and
// nothing at all while nobody asks.
#include "scheduled.hpp"
#include "support/catch.hpp"
#include "support/child.hpp"
#include "support/sanitizers.hpp"
#include "support/sharing.hpp"
#include "traced.hpp"

#include <devshare/devshare.hpp>

#include <chrono>
#include <fstream>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace devshare;
using namespace devshare::test;
using namespace std::chrono_literals;

namespace {

constexpr int rounds = 200;
constexpr std::size_t size = 4096;

Device open_device() { return Runtime::open().value().device(DeviceId{0}).value(); }

template <class Mapping>
void touch(const Device& device, const Mapping& mapping) {
  std::byte byte{};
  demand(static_cast<bool>(copy_to_host(device, std::span(&byte, 1), mapping.bytes().first(1))), "reads the first byte");
  demand(static_cast<bool>(copy_to_host(device, std::span(&byte, 1), mapping.bytes().last(1))), "and the last");
}

// A lends, and also shares by an export of its own; `b` runs in a child, with the endpoint and the ticket.
using Borrowing = std::function<void(const Device&, const Endpoint&, const ReceivedTicket&)>;
CountedCalls calls_of(const Borrowing& b) {
  return count_calls([&b] {
    ::prctl(PR_SET_NAME, "A");
    int ends[2];
    demand(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) == 0, "a socket pair");
    const int ours = as_uncounted(ends[0]);
    const int theirs = as_uncounted(ends[1]);
    const Endpoint endpoint = Endpoint::abstract("devshare-count-" + std::to_string(::getpid()));
    const pid_t borrower = ::fork();
    demand(borrower >= 0, "forks");
    if (borrower == 0) {
      ::prctl(PR_SET_NAME, "B");
      const Device device = open_device();
      const std::int32_t me = device.runtime().bare_pid().value().to_message();
      std::array<std::byte, ticket_size> bytes;
      demand(::send(theirs, &me, sizeof me, 0) == sizeof me, "introduces itself");
      demand(::recv(theirs, bytes.data(), bytes.size(), 0) == static_cast<ssize_t>(bytes.size()), "has a ticket");
      b(device, endpoint, ReceivedTicket::decode(bytes).value());
      ::_exit(0);
    }
    const Device device = open_device();
    auto lender = *Lender::at(device.runtime(), endpoint);
    auto lent = *lender.offer("m", *DeviceMemory::allocate(device, size));
    auto serving = *serve(lender);
    std::int32_t pid = 0;
    demand(::recv(ours, &pid, sizeof pid, 0) == sizeof pid, "B introduces itself");
    auto key = *export_key(*DeviceMemory::allocate(device, size));
    const auto ticket = key.admit(BarePid::from_peer_message(pid)).value();
    demand(::send(ours, ticket.bytes().data(), ticket_size, 0) == ticket_size, "sends the ticket");
    int status = 0;
    demand(::waitpid(borrower, &status, 0) == borrower && status == 0, "B ends well");
  });
}

std::size_t kilobytes_of(const std::string& what) {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    std::size_t value = 0;
    if (word == what && status >> value) return value;
  }
  return 0;
}

}  // namespace

TEST_CASE("borrow, use and return over a kept connection make at most 15 system calls beyond the runtime's own") {
  if (const std::string why = why_no_counting(); !why.empty()) DEVSHARE_SKIP(why);
  const CountedCalls lending = calls_of([](const Device& device, const Endpoint& endpoint, const ReceivedTicket&) {
    const auto borrower = *Borrower::connect(device, endpoint, 20s);
    const auto once = [&] {
      auto lease = *borrower.borrow("m", 20s);
      touch(device, lease);
      demand(static_cast<bool>(std::move(lease).close()), "returns it");
    };
    for (int i = 0; i < 3; ++i) once();
    begin_counting();
    for (int i = 0; i < rounds; ++i) once();
    end_counting();
  });
  const CountedCalls alone = calls_of([](const Device& device, const Endpoint&, const ReceivedTicket& ticket) {
    const auto once = [&] {
      auto mapping = *ImportedMapping::open(ticket, device);
      touch(device, mapping);
      demand(static_cast<bool>(std::move(mapping).close()), "closes it");
    };
    for (int i = 0; i < 3; ++i) once();
    begin_counting();
    for (int i = 0; i < rounds; ++i) once();
    end_counting();
  });
  INFO(lending.problem << "\nlending:\n" << lending.in_words() << "\nthe runtime alone:\n" << alone.in_words());
  REQUIRE(lending.problem.empty());
  REQUIRE(alone.problem.empty());
  CHECK(alone.total() >= 4 * rounds);  // what was counted are imports
  CHECK(lending.total() > alone.total());
  CHECK(lending.total() - alone.total() <= 15 * rounds);
}

TEST_CASE("a thousand live leases cost the lender less than 2 KiB each and no thread") {
  if (under_sanitizer()) DEVSHARE_SKIP("a sanitizer keeps memory of its own");
  constexpr std::size_t leases = 1000;
  Story story;
  const Endpoint endpoint = Endpoint::path(story.file("lender"));
  story.actor("A", [&](Actor& me) {
    const Party a(me);
    Lender lender = me.must(Lender::at(a.runtime, endpoint), "A has an endpoint");
    Lent lent = me.must(lender.offer("m", a.allocate(size)), "A offers");
    Serving serving = me.must(serve(lender), "a thread serves");
    const auto count = [&] { return me.must(lent.holders(), "A looks").size(); };
    me.pause_until("B", "has one");
    const std::size_t threads = kilobytes_of("Threads:");
    const std::size_t before = kilobytes_of("VmRSS:");
    me.step("measured");
    me.pause_until("B", "has all");
    me.expect_equal(count(), leases, "all are held");
    const std::size_t after = kilobytes_of("VmRSS:");
    me.expect(after - std::min(after, before) <= 2 * leases, fmt::format("{} KiB before, {} KiB with all", before, after));
    me.expect_equal(kilobytes_of("Threads:"), threads, "no thread more");
    me.step("done");
    me.must(me.must(std::move(lent).close(30s), "A closes").close(), "and frees");
  });
  story.actor("B", [&](Actor& me) {
    const Party b(me);
    Borrower borrower = me.must(Borrower::connect(b.device, endpoint, 20s), "B connects");
    std::vector<Lease> all;
    all.push_back(me.must(borrower.borrow("m", 20s), "B borrows"));
    me.step("has one");
    me.pause_until("A", "measured");
    while (all.size() < leases) all.push_back(me.must(borrower.borrow("m", 20s), "B borrows"));
    me.step("has all");
    me.pause_until("A", "done");
  });
  story.run();
}

TEST_CASE("a lender with borrowers, whom nobody asks, makes no context switch in five seconds, and nor do they") {
  if (under_sanitizer()) DEVSHARE_SKIP("a sanitizer has threads of its own");
  Story story;
  const Endpoint endpoint = Endpoint::path(story.file("lender"));
  story.actor("A", [&](Actor& me) {
    const Party a(me);
    Lender lender = me.must(Lender::at(a.runtime, endpoint), "A has an endpoint");
    Lent lent = me.must(lender.offer("m", a.allocate(size)), "A offers");
    Serving serving = me.must(serve(lender), "a thread serves");
    me.pause_until("watcher", "done");
    me.must(me.must(std::move(lent).close(30s), "A closes").close(), "and frees");
  });
  story.actor("B", [&](Actor& me) {
    const Party b(me);
    const Lease lease = me.must(borrow(b.device, endpoint, "m", 20s), "B borrows");
    me.step("holds");
    me.pause_until("watcher", "done");
  });
  story.actor("watcher", [](Actor& me) {
    me.pause_until("B", "holds");
    std::this_thread::sleep_for(300ms);  // for the last of them to go to sleep
    const Scheduled a = scheduled(me.pid_of("A"));
    const Scheduled b = scheduled(me.pid_of("B"));
    std::this_thread::sleep_for(5s);
    me.expect_equal(scheduled(me.pid_of("A")).switches - a.switches, 0, "the lender is never scheduled");
    me.expect_equal(scheduled(me.pid_of("B")).switches - b.switches, 0, "the borrower is never scheduled");
    me.expect_equal(a.threads, std::size_t{3}, "the lender has the runtime's thread and its own");
    me.expect_equal(b.threads, std::size_t{1}, "the borrower has none");
    me.step("done");
  });
  story.run();
}
