// SPDX-License-Identifier: Apache-2.0
// What lender and borrower tell each other while a lease lives: generations, and that it is wanted back.
#include "lending.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <fstream>
#include <thread>

#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

using namespace devshare;
using namespace devshare::test;

namespace {

constexpr std::size_t size = 4096;

// Messages of news, on the system's usual buffers: none is charged with less than 256 bytes there.
std::uint64_t more_than_a_socket_holds() {
  std::uint64_t bytes = 0;
  std::ifstream("/proc/sys/net/core/wmem_default") >> bytes;
  return std::max<std::uint64_t>(bytes / 256, 600);
}

bool readable(int fd, int milliseconds) {
  pollfd waiting{fd, POLLIN, 0};
  return ::poll(&waiting, 1, milliseconds) == 1;
}

}  // namespace

TEST_CASE("a borrower that waits for newer data is woken by publish, and sees all that was written before it",
          "[any library]") {
  constexpr std::uint64_t last = 200;
  Story story;
  const Endpoint endpoint = Endpoint::path(story.file("lender"));
  story.actor("A", [&](Actor& me) {
    const Party a(me);
    Lender lender = me.must(Lender::at(a.runtime, endpoint), "A has an endpoint");
    Lent lent = me.must(lender.offer("m", a.allocate(pattern(size, 1))), "A offers");
    Serving serving = me.must(serve(lender), "a thread serves");
    me.pause_until("B", "holds");
    me.expect_equal(lent.generation(), 1U, "generations begin with 1");
    for (std::uint64_t generation = 2; generation <= last; ++generation) {
      a.write(lent.bytes(), pattern(size, generation));
      me.expect_equal(me.must(lent.publish(), "A publishes"), generation, "the next generation");
      if (generation % 10 == 0) me.must(lent.holders(), "A asks in between");
    }
    refused_as(me, lender.publish("no such"), Errc::no_such_offer, "only what is offered is published");
    me.expect_equal(me.must(lender.publish("m"), "by its name, too"), last + 1, "the next generation");
    me.must(me.must(std::move(lent).close(30s), "A closes").close(), "and frees");
  });
  story.actor("B", [&](Actor& me) {
    const Party b(me);
    Lease lease = me.must(borrow(b.device, endpoint, "m", 10s), "B borrows");
    me.expect_equal(me.must(lease.wait_newer(0, Deadline::now()), "what is known is known at once"), 1U, "the first");
    refused_as(me, lease.wait_newer(1, Deadline::in_milliseconds(30)), Errc::timed_out, "nothing newer yet");
    me.step("holds");
    for (std::uint64_t seen = 1; seen < last;) {
      const std::uint64_t newer = me.must(lease.wait_newer(seen, 30s), "B waits");
      me.expect(newer > seen && newer <= last + 1, "it goes forward");
      // All of what was written before this generation was published is there; what came since may be as well.
      seen = newer;
    }
    me.expect(b.read(lease.bytes()) == pattern(size, last), "the last is whole");
    me.expect(soon([&] { return lease.wanted_back(); }), "B hears that A wants it back");
    me.must(std::move(lease).close(), "B returns it");
  });
  story.run();
}

TEST_CASE("whoever borrows later begins with the generation that it finds, and waits for the next", "[any library]") {
  Story story;
  const Endpoint endpoint = Endpoint::path(story.file("lender"));
  story.actor("A", [&](Actor& me) {
    const Party a(me);
    Lender lender = me.must(Lender::at(a.runtime, endpoint), "A has an endpoint");
    Lent lent = me.must(lender.offer("m", a.allocate(size)), "A offers");
    for (int i = 0; i < 3; ++i) me.must(lent.publish(), "A publishes, to nobody");
    Serving serving = me.must(serve(lender), "a thread serves");
    me.pause_until("B", "waits");
    me.must(lent.publish(), "A publishes");
    me.must(me.must(std::move(lent).close(30s), "A closes").close(), "and frees");
  });
  story.actor("B", [&](Actor& me) {
    const Party b(me);
    Borrower borrower = me.must(Borrower::connect(b.device, endpoint, 10s), "B connects");
    Lease lease = me.must(borrower.borrow("m", 10s), "B borrows");
    me.expect_equal(lease.generation(), 4U, "the fourth");
    refused_as(me, lease.wait_newer(4, 30ms), Errc::timed_out, "which is the newest");
    me.step("waits");
    me.expect_equal(me.must(lease.wait_newer(4, 10s), "B waits"), 5U, "for the fifth");
    me.must(std::move(lease).close(), "B returns it");
  });
  story.run();
}

TEST_CASE("who holds what, since when, by what and on which device is told by holders() and with every event") {
  static constexpr std::int32_t borrowers_device = 1;
  Story story;
  const Endpoint endpoint = Endpoint::path(story.file("lender"));
  const auto now = [] {
    return std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::system_clock::now().time_since_epoch())
        .count();
  };
  story.actor("A", [&](Actor& me) {
    const Party a(me);
    {
      Told told;
      Lender lender = me.must(Lender::at(a.runtime, endpoint, told.options()), "A has an endpoint");
      Lent key = me.must(lender.offer("key", a.allocate(size)), "A offers by key");
      Lent handle = me.must(lender.offer("handle", a.map(size)), "and by handle");
      Serving serving = me.must(serve(lender), "a thread serves");
      const auto before = now();
      me.step("serves");
      me.pause_until("B", "holds");
      const auto after = now();
      const auto is_bs = [&](const Holder& holder, Mechanism mechanism, bool imported) {
        me.expect_equal(holder.pid, me.pid_of("B"), "it is B's");
        me.expect_equal(holder.device, borrowers_device, "on its device");
        me.expect(holder.mechanism == mechanism, "by what the memory can");
        me.expect(holder.since >= before && holder.since <= after, "since then");
        me.expect_equal(holder.imported, imported, "and it has it open, or had");
      };
      const auto look = [&](const auto& lent, Mechanism mechanism) {
        me.expect(soon([&] {
                    const auto all = me.must(lent.holders(), "A looks");
                    return all.size() == 1 && all[0].imported;
                  }),
                  "one holds it");
        is_bs(me.must(lent.holders(), "A looks").front(), mechanism, true);
      };
      look(key, Mechanism::by_key);
      look(handle, Mechanism::v2);
      is_bs(told.last(Kind::imported).holder, Mechanism::v2, true);
      me.expect_equal(told.last(Kind::imported).offer, "handle", "the last was this");
      me.expect(told.last(Kind::refused).error == Errc::out_of_range, "B was refused once");
      me.expect_equal(told.last(Kind::refused).offer, "handle", "of this");
      me.expect_equal(told.last(Kind::refused).holder.pid, me.pid_of("B"), "it was B");
      me.expect_equal(told.last(Kind::refused).holder.device, borrowers_device, "for its device");
      me.step("looked");
      me.pause_until_ended("B");
      me.expect(soon([&] { return told.count(Kind::returned) == 1 && told.count(Kind::died) == 1; }),
                "both have ended");
      is_bs(told.last(Kind::returned).holder, Mechanism::by_key, true);
      me.expect_equal(told.last(Kind::returned).offer, "key", "this was returned");
      is_bs(told.last(Kind::died).holder, Mechanism::v2, true);
      me.expect_equal(told.last(Kind::died).offer, "handle", "and this died with B");
      me.must(me.must(std::move(key).close(Deadline::now()), "A closes").close(), "and frees");
      me.must(me.must(std::move(handle).close(Deadline::now()), "A closes").close(), "and frees");
    }
    a.leave();
  });
  story.actor("B", [&](Actor& me) {
    const Party b(me, borrowers_device);
    me.pause_until("A", "serves");
    Borrower borrower = me.must(Borrower::connect(b.device, endpoint, 10s), "B connects");
    refused_as(me, borrower.borrow("handle", 10s, {size + 1, 1}), Errc::out_of_range, "B asks for what is not there");
    Lease key = me.must(borrower.borrow("key", 10s), "B borrows");
    const Lease handle = me.must(borrower.borrow("handle", 10s), "and more");
    me.step("holds");
    me.pause_until("A", "looked");
    me.must(std::move(key).close(), "B returns one");
    ::raise(SIGKILL);
  });
  story.ends("B", by_signal(SIGKILL));
  story.run();
}

TEST_CASE("a borrower that reads nothing is told the newest once it reads again, and holds nobody up",
          "[any library]") {
  const std::uint64_t many = 2 * more_than_a_socket_holds();
  Story story;
  const Endpoint endpoint = Endpoint::path(story.file("lender"));
  story.actor("A", [&](Actor& me) {
    const Party a(me);
    Lender lender = me.must(Lender::at(a.runtime, endpoint), "A has an endpoint");
    Lent lent = me.must(lender.offer("m", a.allocate(pattern(size))), "A offers");
    Serving serving = me.must(serve(lender), "a thread serves");
    me.pause_until("B", "holds");
    for (std::uint64_t i = 1; i < many; ++i) me.must(lent.publish(), "A publishes");
    me.must(lent.withdraw(), "and withdraws");
    me.step("published");
    me.must(me.must(std::move(lent).close(30s), "A closes").close(), "and frees");
  });
  story.actor("B", [&](Actor& me) {
    const Party b(me);
    Lease lease = me.must(borrow(b.device, endpoint, "m", 10s), "B borrows");
    me.step("holds");
    me.pause_until("A", "published");
    me.expect_equal(me.must(lease.wait_newer(many - 1, 30s), "B waits"), many, "the newest comes");
    me.expect(soon([&] { return lease.wanted_back(); }), "and that it is wanted back");
    me.must(std::move(lease).close(), "B returns it");
  });
  story.run();
}

TEST_CASE("a borrower that has read no news borrows all the same: what it asks for waits until there is room",
          "[any library]") {
  const std::uint64_t many = more_than_a_socket_holds();
  constexpr int more = 6;
  Story story;
  const Endpoint endpoint = Endpoint::path(story.file("lender"));
  story.actor("A", [&](Actor& me) {
    const Party a(me);
    Lender lender = me.must(Lender::at(a.runtime, endpoint), "A has an endpoint");
    Lent lent = me.must(lender.offer("m", a.allocate(pattern(size))), "A offers");
    Serving serving = me.must(serve(lender), "a thread serves");
    me.step("offered");
    for (int round = 0; round < more; ++round) {
      me.pause_until("B", fmt::format("holds {}", round));
      for (std::uint64_t i = 0; i < many; ++i) me.must(lent.publish(), "A publishes");
      me.step(fmt::format("published {}", round));
    }
    me.pause_until("B", "has the newest");
    me.must(me.must(std::move(lent).close(30s), "A closes").close(), "and frees");
  });
  story.actor("B", [&](Actor& me) {
    const Party b(me);
    me.pause_until("A", "offered");
    Borrower borrower = me.must(Borrower::connect(b.device, endpoint, 10s), "B connects");
    std::vector<Lease> leases;
    leases.push_back(me.must(borrower.borrow("m", 10s), "B borrows"));
    for (int round = 0; round < more; ++round) {
      me.step(fmt::format("holds {}", round));
      me.pause_until("A", fmt::format("published {}", round));
      leases.push_back(me.must(borrower.borrow("m", 10s), "and once more"));
    }
    me.expect_equal(me.must(leases.front().wait_newer(more * many, 10s), "and the newest comes"), more * many + 1, "as ever");
    me.step("has the newest");
  });
  story.run();
}

TEST_CASE("both sides have a descriptor for an event loop: readable when there is something, and only then",
          "[any library]") {
  Story story;
  const Endpoint endpoint = Endpoint::path(story.file("lender"));
  story.actor("A", [&](Actor& me) {
    const Party a(me);
    Told told;
    Lender lender = me.must(Lender::at(a.runtime, endpoint, told.options()), "A has an endpoint");
    Lent lent = me.must(lender.offer("m", a.allocate(pattern(size))), "A offers");
    me.expect(!readable(lender.native_handle(), 0), "nothing is there yet");
    me.expect_equal(me.must(lender.dispatch(), "A dispatches"), 0U, "and nothing is done");
    me.step("offered");
    while (told.count(Kind::imported) == 0) {
      me.expect(readable(lender.native_handle(), 10'000), "something comes");
      me.expect(me.must(lender.dispatch(), "A dispatches") > 0, "and is dealt with");
    }
    me.expect(!readable(lender.native_handle(), 20), "then all is quiet");
    me.step("served");
    me.pause_until("B", "waits");
    me.must(lent.publish(), "A publishes");
    me.pause_until("B", "heard");
    me.must(lent.withdraw(), "A withdraws");
    me.pause_until_ended("B");
    me.expect(readable(lender.native_handle(), 1'000), "a death is heard within a second");
    while (told.count(Kind::died) == 0) me.must(lender.dispatch(10s), "and dealt with");
    me.expect(me.must(lent.holders(), "A looks").empty(), "nobody holds it");
    me.must(me.must(std::move(lent).close(Deadline::now()), "A closes").close(), "and frees");
  });
  story.actor("B", [&](Actor& me) {
    const Party b(me);
    me.pause_until("A", "offered");
    Lease lease = me.must(borrow(b.device, endpoint, "m", 10s), "B borrows");
    const int handle = me.must(lease.native_handle(), "B has a descriptor");
    me.pause_until("A", "served");
    me.expect(!readable(handle, 20), "nothing is said yet");
    me.step("waits");
    me.expect(readable(handle, 10'000), "something is said");
    me.expect_equal(lease.generation(), 2U, "a new generation");
    me.expect(!readable(handle, 0), "and that was all");
    me.step("heard");
    me.expect(readable(handle, 10'000), "something is said");
    me.expect(lease.wanted_back(), "it is wanted back");
    ::raise(SIGKILL);
  });
  story.ends("B", by_signal(SIGKILL));
  story.run();
}

TEST_CASE(
    "a borrower's descriptor is readable within a second when the lender ends, though a child of it keeps all open",
    "[any library]") {
  Story story;
  const Endpoint endpoint = Endpoint::path(story.file("lender"));
  story.actor("A", [&](Actor& me) {
    const Party a(me);
    Lender lender = me.must(Lender::at(a.runtime, endpoint), "A has an endpoint");
    Lent lent = me.must(lender.offer("m", a.allocate(size)), "A offers");
    Serving serving = me.must(serve(lender), "a thread serves");
    me.pause_until("B", "holds");
    // Without the handlers of fork: it has all that A has.
    const auto child = static_cast<pid_t>(::syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0));
    if (child == 0) {
      ::setpgid(0, 0);  // of a group of its own, which does not end with A
      ::alarm(120);
      for (;;) ::pause();
    }
    me.send("B", child);
    me.step("dies");
  });
  story.kill("A", at("dies"));
  story.actor("B", [&](Actor& me) {
    const Party b(me);
    const Lease lease = me.must(borrow(b.device, endpoint, "m", 10s), "B borrows");
    const int handle = me.must(lease.native_handle(), "B has a descriptor");
    me.step("holds");
    const auto child = me.receive<pid_t>("A");
    me.pause_until_ended("A");
    me.expect(readable(handle, 1'000), "the end of A is heard");
    me.expect(lease.wanted_back(), "which is what it was");
    refused_as(me, lease.check(), Errc::exporter_gone, "the memory went with A");
    me.expect(::kill(child, 0) == 0, "the child is there still");
    ::kill(child, SIGKILL);
  });
  story.run();
}

TEST_CASE("what is returned while the lender takes nothing is told later, by any call, though its connection has ended",
          "[any library]") {
  constexpr std::size_t many = 1'000;  // more than a socket holds
  Story story;
  const Endpoint endpoint = Endpoint::path(story.file("lender"));
  const Endpoint nobody = Endpoint::path(story.file("nobody"));
  story.actor("A", [&](Actor& me) {
    const Party a(me);
    {
      Told told;
      Lender lender = me.must(Lender::at(a.runtime, endpoint, told.options()), "A has an endpoint");
      Lent lent = me.must(lender.offer("m", a.allocate(size)), "A offers");
      while (told.count(Kind::imported) < 1 + many) me.must(lender.dispatch(10s), "A dispatches");
      me.step("takes nothing");
      me.pause_until("B", "has returned all");
      while (told.count(Kind::returned) < 1 + many) {
        if (!me.expect(me.must(lender.dispatch(10s), "A dispatches again") > 0, "there is more to hear")) break;
      }
      me.must(me.must(std::move(lent).close(Deadline::now()), "nobody holds it").close(), "and it is free");
      me.step("heard all");
    }
    a.leave();
  });
  story.actor("B", [&](Actor& me) {
    const Party b(me);
    // Once before, so that what the runtime keeps is there.
    me.must(me.must(borrow(b.device, endpoint, "m", 10s), "B borrows").close(), "and returns");
    const std::size_t before = count_descriptors();
    {
      Borrower borrower = me.must(Borrower::connect(b.device, endpoint, 10s), "B connects");
      std::vector<Lease> all;
      for (std::size_t i = 0; i < many; ++i) all.push_back(me.must(borrower.borrow("m", 10s), "B borrows"));
      me.pause_until("A", "takes nothing");
    }
    me.expect(count_descriptors() > before, "the connection is there still: not all is told");
    me.step("has returned all");
    me.expect(soon([&] {
                refused_as(me, borrow(b.device, nobody, "m", Deadline::now()), Errc::no_lender, "any call");
                return count_descriptors() <= before;
              }),
              "all is told, and the connection is closed");
    me.pause_until("A", "heard all");
    b.leave();
  });
  story.run();
}

TEST_CASE("several threads use the leases of one connection, wait and borrow at once", "[any library]") {
  constexpr std::uint64_t last = 50;
  Story story;
  const Endpoint endpoint = Endpoint::path(story.file("lender"));
  story.actor("A", [&](Actor& me) {
    const Party a(me);
    {
      Lender lender = me.must(Lender::at(a.runtime, endpoint), "A has an endpoint");
      Lent slow = me.must(lender.offer("slow", a.allocate(pattern(size))), "A offers");
      Lent fast = me.must(lender.offer("fast", a.allocate(pattern(size))), "A offers");
      Serving serving = me.must(serve(lender), "a thread serves");
      me.pause_until("B", "holds");
      for (std::uint64_t i = 1; i < last; ++i) {
        me.must(fast.publish(), "A publishes");
        if (i % 7 == 0) me.must(slow.publish(), "A publishes");
      }
      me.must(me.must(std::move(slow).close(30s), "A closes").close(), "and frees");
      me.must(me.must(std::move(fast).close(30s), "A closes").close(), "and frees");
    }
    a.leave();
  });
  story.actor("B", [&](Actor& me) {
    const Party b(me);
    {
      Borrower borrower = me.must(Borrower::connect(b.device, endpoint, 10s), "B connects");
      std::array<std::vector<Lease>, 2> leases;
      for (auto& each : leases) {
        each.push_back(me.must(borrower.borrow("slow", 10s), "B borrows"));
        each.push_back(me.must(borrower.borrow("fast", 10s), "B borrows"));
      }
      me.step("holds");
      std::vector<std::thread> threads;
      for (auto& each : leases) {
        for (Lease& lease : each) {
          const std::uint64_t until = &lease == &each[0] ? 1 + (last - 1) / 7 : last;
          threads.emplace_back([&me, &lease, until] {
            for (std::uint64_t seen = 1; seen < until;) seen = me.must(lease.wait_newer(seen, 30s), "a thread waits");
            me.expect(soon([&] { return lease.wanted_back(); }), "and hears that it is wanted back");
            me.must(std::move(lease).close(), "and returns it");
          });
        }
      }
      for (std::thread& thread : threads) thread.join();
    }
    b.leave();
  });
  story.run();
}
