// SPDX-License-Identifier: Apache-2.0
// How lending ends by the death of either side, and where an object ends that still has holders.
#include "lending.hpp"

#include <atomic>
#include <csignal>

using namespace devshare;
using namespace devshare::test;

namespace {

constexpr std::size_t size = 64 * 1024;

// CLOCK_MONOTONIC is one clock for all processes.
std::int64_t moment() { return detail::monotonic_now(); }
constexpr std::int64_t second = 1'000'000'000;

}  // namespace

TEST_CASE("a borrower that dies is counted out, and its death is told; the memory comes back without it",
          "[any library]") {
  for (const int signal : {SIGKILL, SIGABRT}) {
    CAPTURE(signal);
    Story story;
    const Endpoint endpoint = Endpoint::path(story.file("lender"));
    story.actor("A", [&](Actor& me) {
      const Party a(me);
      Told told;
      {
        Lender lender = me.must(Lender::at(a.runtime, endpoint, told.options()), "A has an endpoint");
        Lent lent = me.must(lender.offer("m", a.allocate(pattern(size))), "A offers");
        Serving serving = me.must(serve(lender), "a thread serves");
        me.pause_until("B", "holds");
        me.pause_until_ended("B");
        me.expect(soon([&] { return me.must(lent.holders(), "A looks").empty(); }), "nobody holds it any more");
        me.expect(soon([&] { return told.count(Kind::died) == 1; }), "and A was told");
        me.give("heard", told.last(Kind::died).moment);
        me.expect_equal(told.count(Kind::returned), 0U, "that it was no return");
        me.must(me.must(std::move(lent).close(Deadline::now()), "A closes at once").close(), "and frees");
      }
      a.leave();
    });
    story.actor("B", [&](Actor& me) {
      const Party b(me);
      const Lease lease = me.must(borrow(b.device, endpoint, "m", 10s), "B borrows");
      me.step("holds");
      me.give("dies", moment());
      ::raise(signal);
    });
    story.ends("B", by_signal(signal));
    story.run();
    CHECK(story.given<std::int64_t>("B", "dies") != 0);
    CHECK(story.given<std::int64_t>("A", "heard") - story.given<std::int64_t>("B", "dies") < second);
  }
}

TEST_CASE("a lender that dies: by key its borrowers are told that the memory is gone, by handle they keep the bytes",
          "[any library]") {
  for (const bool by_key : {true, false}) {
    CAPTURE(by_key);
    Story story;
    const Endpoint endpoint = Endpoint::path(story.file("lender"));
    story.actor("A", [&](Actor& me) {
      const Party a(me);
      Lender lender = me.must(Lender::at(a.runtime, endpoint), "A has an endpoint");
      Serving serving = me.must(serve(lender), "a thread serves");
      const auto play = [&](auto memory) {
        Lent lent = me.must(lender.offer("m", std::move(memory)), "A offers");
        me.pause_until("B", "never");
      };
      if (by_key) {
        play(a.allocate(pattern(size)));
      } else {
        play(a.map(pattern(size)));
      }
    });
    story.actor("B", [&](Actor& me) {
      const Party b(me);
      {
        Borrower borrower = me.must(Borrower::connect(b.device, endpoint, 10s), "B connects");
        Lease lease = me.must(borrower.borrow("m", 10s), "B borrows");
        me.step("holds");
        me.pause_until_ended("A");
        me.expect(lease.wanted_back(), "B hears that A has ended");
        refused_as(me, lease.wait_newer(1, 30s), Errc::exporter_gone, "nothing newer will come");
        refused_as(me, borrower.borrow("m", 10s), Errc::exporter_gone,
                   "nothing more can be borrowed by this connection");
        if (by_key) {
          refused_as(me, lease.check(), Errc::exporter_gone, "the memory went with A");
          refused_as(me, lease.checked_bytes(), Errc::exporter_gone, "a checked accessor says so");
        } else {
          me.must(lease.check(), "the memory is B's too");
          me.expect(b.read(lease.bytes()) == pattern(size), "with its bytes");
        }
        me.must(std::move(lease).close(), "B returns it to nobody");
      }
      b.leave();
    });
    story.kill("A", at("B", "holds"));
    story.run();
  }
}

TEST_CASE("a Lent that ends with holders parks its memory, reports once, and the memory is freed with the last lease") {
  Story story;
  const Endpoint endpoint = Endpoint::path(story.file("lender"));
  story.actor("A", [&](Actor& me) {
    const Party a(me);
    std::atomic<int> reports = 0;
    set_diagnostic_handler({[](const Diagnostic& diagnostic, void* count) {
                              if (diagnostic.event == DiagnosticEvent::memory_parked)
                                ++*static_cast<std::atomic<int>*>(count);
                            },
                            &reports});
    {
      Lender lender = me.must(Lender::at(a.runtime, endpoint), "A has an endpoint");
      {
        Lent lent = me.must(lender.offer("m", a.allocate(pattern(size))), "A offers");
        const Lent unread =
            me.must(lender.offer("unread", a.allocate(pattern(size))), "and something that nobody borrows");
        while (me.must(lent.holders(), "A looks").size() != 2 ||
               !std::ranges::all_of(me.must(lent.holders(), "A looks"), &Holder::imported)) {
          me.must(lender.dispatch(1s), "A dispatches");
        }
      }
      me.expect_equal(reports.load(), 1, "one report");
      me.expect_equal(a.runtime.parked().objects, 1U, "one memory is parked");
      me.expect_equal(a.runtime.parked().bytes, size, "all of it");
      me.expect_equal(a.runtime.parked().holders, 2U, "under two holders");
      me.expect_equal(host::counters().allocations, 1U, "the other is free");
      me.step("parked");
      me.pause_until("B", "returned");
      me.expect(soon([&] {
                  me.must(lender.dispatch(), "A dispatches");
                  return a.runtime.parked().holders == 1;
                }),
                "B has gone");
      me.expect_equal(a.runtime.parked().objects, 1U, "the memory is C's still");
    }
    me.step("no lender");
    me.pause_until("C", "returned");
    me.expect(soon([&] {
                // Any lender's call notices.
                (void)Lender::at(a.runtime, Endpoint::path(""));
                return a.runtime.parked().objects == 0;
              }),
              "and free once C has gone");
    me.expect_equal(reports.load(), 1, "one report");
    a.leave();
  });
  for (const std::string name : {"B", "C"}) {
    story.actor(name, [&, name](Actor& me) {
      const Party b(me);
      Lease lease = me.must(borrow(b.device, endpoint, "m", 10s), "it borrows");
      me.pause_until("A", "parked");
      if (name == "C") me.pause_until("A", "no lender");
      me.must(lease.check(), "the memory is there");
      me.expect(b.read(lease.bytes()) == pattern(size), "and can be read");
      me.expect(lease.wanted_back(), "but wanted back");
      me.must(std::move(lease).close(), "it returns it");
      b.leave();
      me.step("returned");
    });
  }
  story.run();
}

TEST_CASE("a Lent that ends with holders of a handle leaves them theirs, and parks nothing", "[any library]") {
  Story story;
  const Endpoint endpoint = Endpoint::path(story.file("lender"));
  story.actor("A", [&](Actor& me) {
    const Party a(me);
    {
      Lender lender = me.must(Lender::at(a.runtime, endpoint), "A has an endpoint");
      Serving serving = me.must(serve(lender), "a thread serves");
      {
        const Lent lent = me.must(lender.offer("m", a.map(pattern(size))), "A offers");
        me.pause_until("B", "holds");
      }
      me.expect_equal(a.runtime.parked().objects, 0U, "nothing is parked");
      me.step("ended");
      me.pause_until("B", "returned");
    }
    a.leave();
  });
  story.actor("B", [&](Actor& me) {
    const Party b(me);
    Lease lease = me.must(borrow(b.device, endpoint, "m", 10s), "B borrows");
    me.step("holds");
    me.pause_until("A", "ended");
    me.expect(lease.wanted_back(), "B is told");
    me.must(lease.check(), "the memory is there");
    me.expect(b.read(lease.bytes()) == pattern(size), "with its bytes");
    me.must(std::move(lease).close(), "B returns it");
    b.leave();
    me.step("returned");
  });
  story.run();
}
