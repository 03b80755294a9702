// SPDX-License-Identifier: Apache-2.0
// How lending ends by the will of a side: in order, with patience, and without it.
#include "lending.hpp"
#include "support/reports.hpp"
#include "support/sanitizers.hpp"
#include "support/soon.hpp"

using namespace devshare;
using namespace devshare::test;

namespace {

constexpr std::size_t size = 64 * 1024;

// CLOCK_MONOTONIC is one clock for all processes.
std::int64_t moment() { return detail::monotonic_now(); }
constexpr std::int64_t millisecond = 1'000'000;
constexpr std::int64_t second = 1000 * millisecond;

// The key that was imported last: lending shows it to nobody, and the journal has its hash only.
std::string key_of_last_import;
acl::aclError import_and_keep_key(void** address, const char* key, std::uint64_t flags) {
  key_of_last_import = key;
  return api().aclrtIpcMemImportByKey(address, key, flags);
}
void keep_imported_keys(const Device& device) {
  const_cast<acl::Table&>(device.session().record->table).aclrtIpcMemImportByKey = &import_and_keep_key;
}

// How many holders A sees once B has made a step, and what A says then.
struct Seen {
  const char* step;
  std::size_t holders;
  const char* answer;
};

// The part of A, which lends memory until B has ended.
void lend_to_b(Actor& me, const Endpoint& endpoint, std::initializer_list<Seen> in_turn) {
  const Party a(me);
  {
    Lender lender = me.must(Lender::at(a.runtime, endpoint), "A has an endpoint");
    Serving serving = me.must(serve(lender), "a thread serves");
    Lent lent = me.must(lender.offer("m", a.allocate(pattern(size))), "A offers");
    for (const Seen& seen : in_turn) {
      me.pause_until("B", seen.step);
      const auto as_many = [&] { return me.must(lent.holders(), "A knows").size() == seen.holders; };
      me.expect(soon(as_many), fmt::format("{} when B {}", seen.holders == 0 ? "nobody has it" : "B has it", seen.step));
      me.step(seen.answer);
    }
    me.pause_until_ended("B");
    me.must(me.must(std::move(lent).close(30s), "A closes").close(), "and frees");
  }
  a.leave();
}

}  // namespace

TEST_CASE("the importer closes first: the exporter's close comes back until it has, and then has the memory (B001)",
          "[any library]") {
  Story story;
  const Endpoint endpoint = Endpoint::path(story.file("lender"));
  story.actor("A", [&](Actor& me) {
    const Party a(me);
    {
      Lender lender = me.must(Lender::at(a.runtime, endpoint), "A has an endpoint");
      Lent lent = me.must(lender.offer("m", a.allocate(pattern(size))), "A offers");
      Serving serving = me.must(serve(lender), "a thread serves");
      me.pause_until("B", "holds");
      auto now = std::move(lent).close(Deadline::now());
      refused_as(me, now, Errc::still_imported, "B holds it");
      lent = std::move(now).error().take_back();
      auto later = std::move(lent).close(200ms);
      refused_as(me, later, Errc::still_imported, "B holds it still");
      lent = std::move(later).error().take_back();
      me.expect(a.read(lent.bytes()) == pattern(size), "A uses it all the while");
      me.step("tried");
      DeviceMemory back = me.must(std::move(lent).close(30s), "A closes once B has");
      me.give("closed", moment());
      me.must(std::move(back).close(), "and frees");
    }
    a.leave();
  });
  story.actor("B", [&](Actor& me) {
    const Party b(me);
    Lease lease = me.must(borrow(b.device, endpoint, "m", 10s), "B borrows");
    me.step("holds");
    me.pause_until("A", "tried");
    me.expect(b.read(lease.bytes()) == pattern(size), "the memory can be read to the end");
    me.give("closing", moment());
    me.must(std::move(lease).close(), "B returns it");
    b.leave();
  });
  story.run();
  CHECK(story.given<std::int64_t>("B", "closing") < story.given<std::int64_t>("A", "closed"));
}

TEST_CASE("a lender that revokes has its memory back whatever the borrower does, who is told, by key and by handle",
          "[any library]") {
  for (const bool by_key : {true, false}) {
    CAPTURE(by_key);
    Story story;
    const Endpoint endpoint = Endpoint::path(story.file("lender"));
    story.actor("A", [&](Actor& me) {
      const Party a(me);
      {
        Lender lender = me.must(Lender::at(a.runtime, endpoint), "A has an endpoint");
        Serving serving = me.must(serve(lender), "a thread serves");
        const auto play = [&](auto memory) {
          Lent lent = me.must(lender.offer("m", std::move(memory)), "A offers");
          me.pause_until("B", "holds");
          const std::int64_t begin = moment();
          auto back = me.must(std::move(lent).revoke(100ms), "A takes it back");
          me.expect(moment() - begin >= 100 * millisecond, "after its grace");
          me.step("revoked");
          me.must(std::move(back).close(), "and frees");
        };
        if (by_key) {
          play(a.allocate(pattern(size)));
        } else {
          play(a.map(pattern(size)));
        }
        me.pause_until("B", "returned");
      }
      a.leave();
    });
    story.actor("B", [&](Actor& me) {
      const Party b(me);
      Lease lease = me.must(borrow(b.device, endpoint, "m", 10s), "B borrows");
      me.expect((lease.mechanism() == Mechanism::by_key) == by_key, "by what the memory can");
      me.step("holds");
      me.pause_until("A", "revoked");
      me.expect(lease.wanted_back(), "B is told");
      refused_as(me, lease.check(), Errc::revoked, "and that it is too late");
      refused_as(me, lease.checked_bytes(), Errc::revoked, "a checked accessor says so");
      refused_as(me, lease.wait_newer(99, 10s), Errc::revoked, "nothing newer will come");
      Bytes bytes(size);
      const auto read = copy_to_host(b.device, bytes, lease.bytes());
      me.expect(static_cast<bool>(read) == !by_key, "by a handle the memory is B's too");
      if (!by_key) me.expect(bytes == pattern(size), "with its bytes");
      me.must(std::move(lease).close(), "B returns it");
      b.leave();
      me.step("returned");
    });
    story.run();
  }
}

TEST_CASE(
    "a lender that revokes asks first: who returns within the grace has lost nothing, and is not waited for longer",
    "[any library]") {
  Story story;
  const Endpoint endpoint = Endpoint::path(story.file("lender"));
  story.actor("A", [&](Actor& me) {
    const Party a(me);
    {
      Told told;
      Lender lender = me.must(Lender::at(a.runtime, endpoint, told.options()), "A has an endpoint");
      Serving serving = me.must(serve(lender), "a thread serves");
      Lent lent = me.must(lender.offer("m", a.allocate(pattern(size))), "A offers");
      me.pause_until("B", "holds");
      DeviceMemory back = me.must(std::move(lent).revoke(Deadline::never()), "A asks for it, and waits");
      me.expect(a.read(back.bytes()) == pattern(size, 1), "B had the time to write");
      me.expect(soon([&] { return told.count(Kind::returned) == 1; }), "and has returned it");
      me.must(std::move(back).close(), "A frees");
    }
    a.leave();
  });
  story.actor("B", [&](Actor& me) {
    const Party b(me);
    Lease lease = me.must(borrow(b.device, endpoint, "m", 10s), "B borrows");
    me.step("holds");
    me.expect(soon([&] { return lease.wanted_back(); }), "B is asked for it");
    me.expect(!soon([&] { return !lease.check(); }, 100ms), "and has it all the while");
    b.write(lease.bytes(), pattern(size, 1));
    me.must(std::move(lease).close(), "B returns it");
    b.leave();
  });
  story.run();
}

TEST_CASE("what is withdrawn lets nobody new in, its holders keep it, and its name is free for other memory",
          "[any library]") {
  Story story;
  const Endpoint endpoint = Endpoint::path(story.file("lender"));
  story.actor("A", [&](Actor& me) {
    const Party a(me);
    {
      Lender lender = me.must(Lender::at(a.runtime, endpoint), "A has an endpoint");
      Serving serving = me.must(serve(lender), "a thread serves");
      Lent old = me.must(lender.offer("m", a.allocate(pattern(size, 1))), "A offers");
      me.pause_until("B", "holds");
      me.must(old.withdraw(), "A withdraws");
      me.step("withdrew");
      me.pause_until("B", "was refused");
      Lent young = me.must(lender.offer("m", a.allocate(pattern(size, 2))), "A offers other memory under the name");
      me.expect_equal(me.must(lender.publish("m"), "which is what the name means"), 2U, "from now on");
      me.expect_equal(old.generation(), 1U, "and not the old");
      me.step("offered");
      me.pause_until("B", "done");
      me.must(me.must(std::move(old).close(30s), "A closes").close(), "and frees");
      me.must(me.must(std::move(young).close(30s), "A closes").close(), "and frees");
    }
    a.leave();
  });
  story.actor("B", [&](Actor& me) {
    const Party b(me);
    {
      Borrower borrower = me.must(Borrower::connect(b.device, endpoint, 10s), "B connects");
      Lease old = me.must(borrower.borrow("m", 10s), "B borrows");
      me.step("holds");
      me.pause_until("A", "withdrew");
      refused_as(me, borrower.borrow("m", time_to_answer), Errc::no_such_offer, "nobody new gets in");
      me.expect(old.wanted_back(), "it is wanted back");
      me.step("was refused");
      me.pause_until("A", "offered");
      const Lease young = me.must(borrower.borrow("m", 10s), "B borrows by the name");
      me.expect(b.read(young.bytes()) == pattern(size, 2), "what is offered now");
      me.expect(!young.wanted_back(), "which nobody wants back");
      me.must(old.check(), "the old is B's still");
      me.expect(b.read(old.bytes()) == pattern(size, 1), "with its bytes");
    }
    b.leave();
    me.step("done");
  });
  story.run();
}

TEST_CASE("a lease whose import the runtime does not close goes on until it does, or until its process ends") {
  Story story;
  const Endpoint endpoint = Endpoint::path(story.file("lender"));
  story.actor("A", [&](Actor& me) {
    lend_to_b(me, endpoint,
              {{"was refused", 1, "saw that"}, {"returned", 0, "saw it returned"}, {"parked", 1, "saw that too"}});
  });
  story.actor("B", [&](Actor& me) {
    const Party b(me);
    const Refusal asked_for{Errc::refused, code::rt_drv_internal, Reason::injected};
    Borrower borrower = me.must(Borrower::connect(b.device, endpoint, 10s), "B connects");
    Lease lease = me.must(borrower.borrow("m", 10s), "B borrows");
    host::fail(acl::Entry::aclrtIpcMemClose, 1, code::rt_drv_internal);
    auto refused = std::move(lease).close();
    b.refused(refused, asked_for, "it is not closed");
    lease = std::move(refused).error().take_back();
    me.must(lease.check(), "it is lent still");
    me.step("was refused");
    me.pause_until("A", "saw that");
    me.must(std::move(lease).close(), "now it closes");
    b.refused(std::move(lease).close(), {Errc::closed}, "once");
    me.step("returned");
    me.pause_until("A", "saw it returned");

    const Reports reports;
    {
      const Lease again = me.must(borrower.borrow("m", 10s), "B borrows again");
      host::fail(acl::Entry::aclrtIpcMemClose, 1, code::rt_drv_internal);
    }
    me.expect(reports.heard.size() == 1 && reports.heard[0].event == DiagnosticEvent::memory_parked, "one report: parked");
    me.expect_equal(b.runtime.parked().bytes, size, "with its bytes");
    me.step("parked");
    me.pause_until("A", "saw that too");
  });
  story.run();
}

TEST_CASE("a lease whose import was closed behind it ends when it is closed, and the lender is told") {
  Story story;
  const Endpoint endpoint = Endpoint::path(story.file("lender"));
  story.actor("A", [&](Actor& me) {
    lend_to_b(me, endpoint, {{"borrowed", 1, "saw that"}, {"returned", 0, "saw it returned"}});
  });
  story.actor("B", [&](Actor& me) {
    const Party b(me);
    keep_imported_keys(b.device);
    {
      Borrower borrower = me.must(Borrower::connect(b.device, endpoint, 10s), "B connects");
      for (const bool by_destructor : {false, true}) {
        Lease lease = me.must(borrower.borrow("m", 10s), "B borrows");
        if (!by_destructor) {
          me.step("borrowed");
          me.pause_until("A", "saw that");
        }
        me.must(b.device.make_current(), "the device is current");
        b.call_succeeds(api().aclrtIpcMemClose(key_of_last_import.c_str()), "the import is closed behind the lease");
        if (by_destructor) continue;
        auto closed = std::move(lease).close();
        refused_as(me, closed, Errc::stale_token, "the runtime knows no such import");
        if (closed) me.fail("so nothing comes back");
        b.refused(std::move(closed).error().take_back().close(), {Errc::closed}, "nothing came back");
      }
      me.step("returned");
      me.pause_until("A", "saw it returned");
      me.expect_equal(b.runtime.parked().objects, 0U, "nothing is parked");
    }
    b.leave();
  });
  story.run();
}

TEST_CASE("an export that the runtime does not close: close() comes back, and revoke() ends all the same") {
  Story story;
  const Endpoint endpoint = Endpoint::path(story.file("lender"));
  story.actor("A", [&](Actor& me) {
    const Party a(me);
    const Reports reports;
    Lender lender = me.must(Lender::at(a.runtime, endpoint), "A has an endpoint");
    Serving serving = me.must(serve(lender), "a thread serves");
    Lent lent = me.must(lender.offer("m", a.allocate(pattern(size))), "A offers");
    me.pause_until("B", "returned");
    host::fail(acl::Entry::aclrtIpcMemClose, 1, code::rt_drv_internal);
    auto refused = std::move(lent).close(10s);
    refused_as(me, refused, Errc::refused, "the runtime does not close it");
    lent = std::move(refused).error().take_back();
    me.expect(a.read(lent.bytes()) == pattern(size), "A has it still");
    me.must(me.must(std::move(lent).close(10s), "the next time it works").close(), "and it is free");
    me.expect_equal(a.runtime.parked().objects, 0U, "nothing was parked");

    Lent again = me.must(lender.offer("again", a.allocate(pattern(size))), "A offers");
    me.pause_until("B", "returned again");
    host::fail_with_probability(acl::Entry::aclrtIpcMemClose, 1, 1, code::rt_drv_internal);
    refused_as(me, std::move(again).revoke(10s), Errc::refused, "the runtime does not close it, ever");
    host::clear();
    me.expect_equal(a.runtime.parked().objects, 1U, "the memory is parked");
    me.expect_equal(a.runtime.parked().bytes, size, "all of it");
    me.expect_equal(a.runtime.parked().holders, 0U, "held by nobody");
    me.expect(reports.heard.size() == 1 && reports.heard[0].event == DiagnosticEvent::memory_parked, "one report");
    refused_as(me, again.holders(), Errc::closed, "and the offer has ended");
  });
  story.actor("B", [&](Actor& me) {
    const Party b(me);
    {
      Borrower borrower = me.must(Borrower::connect(b.device, endpoint, 10s), "B connects");
      me.must(me.must(borrower.borrow("m", 10s), "B borrows").close(), "and returns");
      me.step("returned");
      me.must(me.must(borrower.borrow("again", 10s), "B borrows").close(), "and returns");
      me.step("returned again");
    }
    b.leave();
  });
  story.run();
}

TEST_CASE("leases are counted as they are: ten of one borrower and five of another, overlapping, never too few (B043)",
          "[any library]") {
  Story story;
  const Endpoint endpoint = Endpoint::path(story.file("lender"));
  story.actor("A", [&](Actor& me) {
    const Party a(me);
    {
      Told told;
      Lender lender = me.must(Lender::at(a.runtime, endpoint, told.options()), "A has an endpoint");
      Lent lent = me.must(lender.offer("m", a.allocate(pattern(size))), "A offers");
      me.step("offered");
      while (told.count(Kind::returned) < 15) {
        me.must(lender.dispatch(10s), "A dispatches");
        const std::size_t open = told.count(Kind::imported) - told.count(Kind::returned);
        const auto holders = me.must(lent.holders(), "A looks");
        me.expect(holders.size() >= open && holders.size() <= 15, "as many as there are");
      }
      me.expect(me.must(lent.holders(), "A looks").empty(), "none in the end");
      me.must(me.must(std::move(lent).close(Deadline::now()), "A closes at once").close(), "and frees");
    }
    a.leave();
  });
  for (const std::string name : {"B", "C"}) {
    story.actor(name, [&, name](Actor& me) {
      const Party b(me);
      me.pause_until("A", "offered");
      const int times = name == "B" ? 10 : 5;
      {
        Borrower borrower = me.must(Borrower::connect(b.device, endpoint, 10s), "it connects");
        std::vector<Lease> held;
        for (int i = 0; i < times; ++i) {
          held.push_back(me.must(borrower.borrow("m", 10s), "it borrows"));
          if (i % 3 == 2) held.erase(held.begin());
        }
      }
      b.leave();
    });
  }
  story.run();
}

TEST_CASE(
    "2,000 offers that nobody reads hold nothing, and are closed at once; what was closed cannot be borrowed (B057)") {
  Story story;
  const Endpoint endpoint = Endpoint::path(story.file("lender"));
  story.actor("A", [&](Actor& me) {
    const Party a(me, 0, {{"DEVSHARE_HOST_RAISE_NOFILE", "1"}});
    {
      Lender lender = me.must(Lender::at(a.runtime, endpoint), "A has an endpoint");
      Serving serving = me.must(serve(lender), "a thread serves");
      std::vector<Lent<DeviceMemory>> all;
      for (int i = 0; i < 2000; ++i)
        all.push_back(me.must(lender.offer(std::to_string(i), a.allocate(4096)), "A offers"));
      me.expect_equal(host::counters().keys_exported, 0U, "nothing is exported");
      me.step("offered");
      me.pause_until("B", "asked");
      me.expect_equal(host::counters().keys_exported, 1U, "but what B had");
      const std::int64_t begin = moment();
      for (Lent<DeviceMemory>& each : all)
        me.must(me.must(std::move(each).close(10s), "A closes").close(), "and frees");
      me.expect(moment() - begin < second || under_sanitizer(), "within a second");
      me.step("closed");
      me.pause_until("B", "done");
    }
    a.leave();
  });
  story.actor("B", [&](Actor& me) {
    const Party b(me);
    {
      me.pause_until("A", "offered");
      Borrower borrower = me.must(Borrower::connect(b.device, endpoint, 10s), "B connects");
      me.must(me.must(borrower.borrow("77", 10s), "B borrows").close(), "and returns");
      me.step("asked");
      me.pause_until("A", "closed");
      refused_as(me, borrower.borrow("77", time_to_answer), Errc::no_such_offer,
                 "it is offered no more");
    }
    b.leave();
    me.step("done");
  });
  story.run();
}

TEST_CASE("what is revoked between its ticket and the import is not imported: the error is revoked (B057)") {
  for (const bool by_key : {true, false}) {
    CAPTURE(by_key);
    Story story;
    const Endpoint endpoint = Endpoint::path(story.file("lender"));
    story.actor("A", [&](Actor& me) {
      const Party a(me);
      {
        Told told;
        Lender lender = me.must(Lender::at(a.runtime, endpoint, told.options()), "A has an endpoint");
        Serving serving = me.must(serve(lender), "a thread serves");
        const auto play = [&](auto memory) {
          Lent lent = me.must(lender.offer("m", std::move(memory)), "A offers");
          me.expect(soon([&] { return me.must(lent.holders(), "A looks").size() == 1; }), "B has its ticket");
          me.must(me.must(std::move(lent).revoke(Deadline::now()), "A takes it back").close(), "and frees");
        };
        if (by_key) {
          play(a.allocate(pattern(size)));
        } else {
          play(a.map(pattern(size)));
        }
        me.pause_until("B", "done");
        me.expect_equal(told.count(Kind::imported), 0U, "B never had it open");
      }
      a.leave();
    });
    story.actor("B", [&](Actor& me) {
      const Party b(me);
      host::delay(by_key ? acl::Entry::aclrtIpcMemImportByKey : acl::Entry::aclrtMemImportFromShareableHandleV2,
                  under_sanitizer() ? 3000 : 1000);
      refused_as(me, borrow(b.device, endpoint, "m", 30s), Errc::revoked, "B comes too late");
      host::clear();
      b.leave();
      me.step("done");
    });
    story.run();
  }
}

TEST_CASE("a lender that has closed its endpoint lets go of who holds nothing more, and leaves no question unanswered",
          "[any library]") {
  Story story;
  const Endpoint endpoint = Endpoint::path(story.file("lender"));
  story.actor("A", [&](Actor& me) {
    const Party a(me);
    {
      Lender lender = me.must(Lender::at(a.runtime, endpoint), "A has an endpoint");
      Lent lent = me.must(lender.offer("m", a.allocate(pattern(size))), "A offers");
      Lent other = me.must(lender.offer("other", a.allocate(pattern(size))), "and another");
      {
        Serving serving = me.must(serve(lender), "a thread serves");
        me.pause_until("B", "holds");
      }
      me.must(std::move(lender).close(), "A closes its endpoint");
      me.must(me.must(std::move(lent).close(30s), "A waits for B").close(), "and frees");
      me.step("closed");
      me.pause_until("B", "answered");  // and dispatches no more
      me.must(me.must(std::move(other).close(30s), "A closes").close(), "and frees");
    }
    a.leave();
  });
  story.actor("B", [&](Actor& me) {
    const Party b(me);
    {
      Borrower borrower = me.must(Borrower::connect(b.device, endpoint, 10s), "B connects");
      Lease lease = me.must(borrower.borrow("m", 10s), "B borrows");
      me.step("holds");
      me.expect(soon([&] { return lease.wanted_back(); }), "it is wanted back");
      me.must(std::move(lease).close(), "B returns it");
      me.pause_until("A", "closed");
      refused_as(me, borrower.borrow("other", 1s), Errc::exporter_gone, "B is told that nobody lends any more");
      me.step("answered");
    }
    b.leave();
  });
  story.run();
}
