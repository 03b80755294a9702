// SPDX-License-Identifier: Apache-2.0
// Lending as a program does it: one call on each side. Who may, who goes wrong and who dies is in lending_*.cpp beside.
#include "lending.hpp"

#include <algorithm>
#include <string>
#include <vector>

using namespace devshare;
using namespace devshare::test;

namespace {

constexpr std::size_t KiB = 1024;
constexpr std::size_t MiB = 1024 * KiB;

}  // namespace

TEST_CASE("A lends memory, B borrows it by name, writes, and returns it; A closes and has its memory back",
          "[any library]") {
  for (const std::size_t size : {std::size_t{1}, 4 * KiB, 3 * MiB + 5}) {
    CAPTURE(size);
    Story story;
    const Endpoint endpoint = Endpoint::path(story.file("lender"));
    story.actor("A", [&](Actor& me) {
      const Party a(me);
      {
        Lender lender = me.must(Lender::at(a.runtime, endpoint), "A has an endpoint");
        Lent lent = me.must(lender.offer("weights", a.allocate(pattern(size, 1))), "A offers");
        Serving serving = me.must(serve(lender), "a thread serves");
        me.step("offered");
        me.pause_until("B", "borrowed");
        me.expect(soon([&] {
                    const auto all = me.must(lent.holders(), "A asks who holds it");
                    return all.size() == 1 && all[0].imported;
                  }),
                  "B has said that it has it open");
        const auto holders = me.must(lent.holders(), "A asks who holds it");
        me.expect_equal(holders.size(), 1U, "one process does");
        me.expect_equal(holders[0].pid, me.pid_of("B"), "it is B");
        me.expect(holders[0].mechanism == Mechanism::by_key && holders[0].since > 0, "by key, for a while");
        auto refused = std::move(lent).close(Deadline::now());
        me.expect(!refused && refused.error().kind() == Errc::still_imported, "A cannot close it under B");
        me.expect_equal(refused.error().error().detail().needed, 1U, "and is told how many hold it");
        lent = std::move(refused).error().take_back();
        me.step("asked for it");
        DeviceMemory memory = me.must(std::move(lent).close(10s), "A waits for B, closes and has its memory back");
        me.expect(a.read(memory.bytes()) == pattern(size, 2), "with what B wrote");
      }
      a.leave();
      me.step("left");
    });
    story.actor("B", [&](Actor& me) {
      const Party b(me);
      {
        Lease lease = me.must(borrow(b.device, endpoint, "weights", 10s), "B borrows");
        me.expect_equal(lease.size(), size, "all of it");
        me.expect(b.read(lease.bytes()) == pattern(size, 1), "and reads what A wrote");
        me.step("borrowed");
        b.write(lease.bytes(), pattern(size, 2));
        me.pause_until("A", "asked for it");
        me.expect(soon([&] { return lease.wanted_back(); }), "B hears that A wants it back");
        me.must(lease.check(), "the bytes are there all the same");
        me.must(std::move(lease).close(), "B returns it");
      }
      b.leave();
    });
    story.run();
  }
}

TEST_CASE("a borrower may come first: it waits for the lender, and for the offer", "[any library]") {
  Story story;
  const Endpoint endpoint = Endpoint::path(story.file("lender"));
  story.actor("B", [&](Actor& me) {
    const Party b(me);
    me.step("asks");
    Lease lease = me.must(borrow(b.device, endpoint, "late", 20s), "B borrows");
    me.expect(b.read(lease.bytes()) == pattern(64, 3), "what A offered in the end");
    me.must(std::move(lease).close(), "B returns it");
    me.step("returned");
  });
  story.actor("A", [&](Actor& me) {
    const Party a(me);
    me.pause_until("B", "asks");
    Lender lender = me.must(Lender::at(a.runtime, endpoint), "A has an endpoint");
    Serving serving = me.must(serve(lender), "a thread serves");
    Lent other = me.must(lender.offer("other", a.allocate(pattern(64, 1))), "A offers something else first");
    Lent lent = me.must(lender.offer("late", a.allocate(pattern(64, 3))), "and then this");
    me.pause_until("B", "returned");
    me.must(me.must(std::move(lent).close(10s), "A closes").close(), "and frees");
    me.must(me.must(std::move(other).close(10s), "A closes").close(), "and frees");
  });
  story.run();
}

TEST_CASE("one connection borrows many offers, one by one and all at once, from several lenders of a process",
          "[any library]") {
  constexpr std::size_t offers = 40;
  Story story;
  const std::vector<Endpoint> endpoints{Endpoint::path(story.file("one")),
                                        Endpoint::abstract("devshare-test" + story.file("two").substr(4))};
  const auto name = [](std::size_t i) { return "offer " + std::to_string(i); };
  story.actor("A", [&](Actor& me) {
    const Party a(me);
    {
      std::vector<Lender> lenders;
      std::vector<Lent<DeviceMemory>> lent;
      std::vector<Serving> serving;
      for (std::size_t l = 0; l < endpoints.size(); ++l) {
        lenders.push_back(me.must(Lender::at(a.runtime, endpoints[l]), "A has an endpoint"));
        for (std::size_t i = 0; i < offers; ++i) {
          lent.push_back(me.must(lenders.back().offer(name(i), a.allocate(pattern(100 + i, l))), "A offers"));
        }
        serving.push_back(me.must(serve(lenders.back()), "a thread serves"));
      }
      me.step("offered");
      me.pause_until("B", "done");
      for (auto& each : lent) me.must(me.must(std::move(each).close(10s), "A closes").close(), "and frees");
    }
    a.leave();
  });
  story.actor("B", [&](Actor& me) {
    const Party b(me);
    me.pause_until("A", "offered");
    for (std::size_t l = 0; l < endpoints.size(); ++l) {
      Borrower borrower = me.must(Borrower::connect(b.device, endpoints[l], 10s), "B connects");
      std::vector<std::string> names;
      for (std::size_t i = 0; i < offers; ++i) names.push_back(name(i));
      const std::vector<std::string_view> views(names.begin(), names.end());
      std::vector<Lease> all = me.must(borrower.borrow_all(views, 10s), "B borrows all");
      std::vector<Lease> again;
      for (const std::string_view each : views) again.push_back(me.must(borrower.borrow(each, 10s), "and each"));
      for (std::size_t i = 0; i < offers; ++i) {
        me.expect(b.read(all[i].bytes()) == pattern(100 + i, l), "each is what its name says");
        me.expect(b.read(again[i].bytes()) == pattern(100 + i, l), "each time");
      }
      const std::vector<std::string_view> wrong{views[0], "no such", views[1]};
      const auto none = borrower.borrow_all(wrong, time_to_answer);
      me.expect(!none && none.error().kind() == Errc::no_such_offer, "all or none");
    }
    b.has_given_everything_back();
    me.step("done");
  });
  story.run();
}
