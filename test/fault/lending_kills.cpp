// SPDX-License-Identifier: Apache-2.0
// Death in the middle of lending: a borrower, and a lender, killed before each of their system calls in turn, from the
// first to the last. Who survives gets its success or a typed error and goes on, a dead borrower holds nothing, a dead
// lender's place is free, and nothing is left of either.
#include "aftermath.hpp"
#include "lending_parts.hpp"
#include "support/soak.hpp"

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <initializer_list>
#include <iostream>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

using namespace devshare;
using namespace devshare::test;

namespace {

// Leads one process after the other, each to one step further, and tells `others` what has become of it: the step, or
// 0 when it has come through. They answer when they are ready for the next.
void kill_at_every_step(Actor& me, std::initializer_list<std::string_view> others, const SharedSight& sight,
                        const std::function<void()>& body) {
  int n = 1;
  for (bool killed = true; killed; ++n) {
    for (const std::string_view other : others) me.receive<int>(other);
    sight->ended = false;
    {
      Led led(body);
      killed = led.to_step(n);
      if (killed) {
        led.kill();
      } else {
        const bool well = led.ends_well();
        me.expect(well, "who comes through ends well: " + led.end_in_words());
      }
    }
    sight->ended = true;
    for (const std::string_view other : others) me.send(other, killed ? n : 0);
  }
  me.expect(n > 20, fmt::format("there are some steps to die at: {}", n));
  me.give("steps", n);
}

}  // namespace

TEST_CASE("a borrower is killed at every step: its lease goes with it, the lender serves on and closes") {
  if (const std::string why = why_no_leading(); !why.empty()) DEVSHARE_SKIP(why);
  for (int i = 0; i < 2 * times_over(); ++i) {
    const bool by_key = i % 2 == 0;
    CAPTURE(way_in_words(by_key));
    Story story(240s);
    const SharedSight sight;
    const Endpoint endpoint = Endpoint::path(story.file("lender"));
    story.actor("A", [&](Actor& me) {
      const Party a(me);
      Told told;
      {
        Lender lender = me.must(Lender::at(a.runtime, endpoint, told.options()), "A has an endpoint");
        Serving serving = me.must(serve(lender), "a thread serves");
        with_memory(by_key, a, [&](auto make) {
          const auto another_borrows = [&](int round) {
            me.send("C", round);
            me.receive<int>("C");
          };
          // Once without a death, so that what stays is there: C's connection.
          Lent first = me.must(lender.offer("m", make()), "A offers");
          another_borrows(1);
          me.must(me.must(std::move(first).close(30s), "A closes").close(), "and frees");
          Inventory before = Inventory::now();
          for (int round = 1; round != 0;) {
            Lent lent = me.must(lender.offer("m", make()), "A offers");
            me.send("K", 0);
            round = me.receive<int>("K");
            comes(
                me, [&] { return me.must(lent.holders(), "A looks").empty(); },
                fmt::format("nobody holds it within two seconds, dead at step {}", round), 2s);
            another_borrows(1);
            auto back = me.must(std::move(lent).close(30s), "A closes");
            me.expect(a.read(back.bytes()) == pattern(lent_size), "and has its memory back");
            me.must(std::move(back).close(), "and frees");
            is_as_before(me, before, fmt::format("as before a borrower died at step {}", round));
          }
          me.send("C", 0);
          me.expect(told.count(Kind::died) > 0, "some died with a lease");
          me.expect_equal(told.count(Kind::refused), 0U, "nobody was refused");
        });
      }
      a.leave();
    });
    story.actor("C", [&](Actor& me) {
      const Party c(me);
      while (me.receive<int>("A") != 0) {
        Lease lease = me.must(borrow(c.device, endpoint, "m", 30s), "another borrows");
        me.expect(c.read(lease.bytes()) == pattern(lent_size), "and reads");
        me.must(std::move(lease).close(), "and returns it");
        me.send("A", 1);
      }
      c.leave();
    });
    story.actor("K", [&](Actor& me) { kill_at_every_step(me, {"A"}, sight, [&] { borrow_use_return(endpoint); }); });
    story.run();
    nothing_is_left_of(story);
  }
}

namespace {

// What a borrower sees of a lender that may die at any moment, and of the next one at its place: success, or that the
// lender has gone, and never that again from the one that is there.
class Outliver {
 public:
  Outliver(const Party& b, const Endpoint& endpoint, bool by_key, const SharedSight& sight)
      : b_(b), endpoint_(endpoint), by_key_(by_key), sight_(sight) {}

  void play() {
    Lease returned = borrow_in_the_end("m");
    use(returned);
    b_.me.must(std::move(returned).close(), "it is returned");
    Lease wanted = borrow_in_the_end("wanted");
    use(wanted);
    comes(
        b_.me, [&] { return wanted.wanted_back() || sight_->ended; }, "the lender wants it back, or has ended");
    b_.me.must(std::move(wanted).close(), "it is returned");
    Lease revoked = borrow_in_the_end("revoked");
    use(revoked);
    comes(
        b_.me, [&] { return is_taken_back(revoked) || sight_->ended; }, "the lender takes it back, or has ended");
    use(revoked);
    b_.me.must(std::move(revoked).close(), "it is closed");
  }

 private:
  Lease borrow_in_the_end(std::string_view name) {
    for (int tried = 0; tried < 100; ++tried) {
      auto lease = borrow(b_.device, endpoint_, name, 30s);
      if (lease) return *std::move(lease);
      const Errc kind = lease.error().kind();
      b_.me.expect(kind == Errc::exporter_gone || kind == Errc::stale_token,
                   fmt::format("a lender that dies: {}", lease.error()));
    }
    b_.me.fail("nothing can be borrowed");
  }

  void use(const Lease& lease) {
    Bytes bytes(lent_size);
    const auto read = copy_to_host(b_.device, bytes, lease.bytes());
    if (read) {
      b_.me.expect(bytes == pattern(lent_size), "what is read is what was written");
      return;
    }
    b_.me.expect(by_key_, fmt::format("by a handle the bytes stay: {}", read.error()));
    b_.me.expect(read.error().kind() == Errc::exporter_gone, fmt::format("the memory has gone: {}", read.error()));
    const auto checked = lease.check();
    b_.me.expect(!checked && (checked.error().kind() == Errc::exporter_gone || checked.error().kind() == Errc::revoked),
                 "and check() says so");
  }

  static bool is_taken_back(const Lease& lease) {
    const auto checked = lease.check();
    return !checked && checked.error().kind() == Errc::revoked;
  }

  const Party& b_;
  const Endpoint& endpoint_;
  const bool by_key_;
  const SharedSight& sight_;
};

}  // namespace

TEST_CASE("a lender is killed at every step: its borrower is told and goes on, the next lender takes its place") {
  if (const std::string why = why_no_leading(); !why.empty()) DEVSHARE_SKIP(why);
  for (int i = 0; i < 2 * times_over(); ++i) {
    const bool by_key = i % 2 == 0;
    CAPTURE(way_in_words(by_key));
    Story story(240s);
    const SharedSight sight;
    const std::string path = story.file("lender");
    const Endpoint endpoint = Endpoint::path(path);
    const auto nothing_lies_there = [&] {
      return !std::filesystem::exists(path) && !std::filesystem::exists(path + ".lock");
    };
    story.actor("B", [&](Actor& me) {
      const Party b(me);
      std::optional<Inventory> before;
      for (int round = 1; round != 0;) {
        me.send("K", 0);
        Outliver(b, endpoint, by_key, sight).play();
        round = me.receive<int>("K");
        if (round == 0) break;
        me.must(me.must(borrow(b.device, endpoint, "m", 30s), "B borrows from the next lender").close(), "and returns");
        me.send("C", round);
        me.receive<int>("C");
        if (!before) before = Inventory::now();
        is_as_before(me, *before, fmt::format("as before a lender died at step {}", round));
      }
      b.leave();
    });
    story.actor("C", [&](Actor& me) {
      const Party c(me);
      for (;;) {
        me.send("K", 0);
        const int round = me.receive<int>("K");
        if (round == 0) break;
        {
          Lender lender = me.must(Lender::at(c.runtime, endpoint), "C takes the dead lender's place");
          with_memory(by_key, c, [&](auto make) {
            Lent m = me.must(lender.offer("m", make()), "C offers");
            Lent wanted = me.must(lender.offer("wanted", make()), "C offers");
            Lent revoked = me.must(lender.offer("revoked", make()), "C offers");
            Serving serving = me.must(serve(lender), "a thread serves");
            me.receive<int>("B");
            for (auto* const each : {&m, &wanted, &revoked}) {
              me.must(me.must(std::move(*each).close(30s), "C closes").close(), "and frees");
            }
          });
        }
        me.expect(nothing_lies_there(), "nothing lies there any more");
        me.send("B", round);
        host::Counters left = host::counters();
        left.connections = 0;
        me.expect(left == host::Counters{}, "C has nothing left: " + host::in_words(left));
      }
      c.leave();
    });
    story.actor("K", [&](Actor& me) {
      kill_at_every_step(me, {"B", "C"}, sight, [&] { lend_three_ways(endpoint, by_key); });
    });
    story.run();
    CHECK(nothing_lies_there());
    nothing_is_left_of(story);
  }
}

namespace {

// A child that borrows, uses and returns, as often as that; killed when this process ends.
pid_t spawn_borrower(const Endpoint& endpoint, int times) {
  std::cout.flush();
  const pid_t child = ::fork();
  if (child < 0) std::abort();
  if (child != 0) return child;
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  const Runtime runtime = got(Runtime::open(), "the runtime opens");
  {
    const Device device = got(runtime.device(DeviceId{0}), "the device is there");
    for (int i = 0; i < times; ++i) borrow_and_use(device, endpoint);
  }
  got(runtime.finalize(), "the runtime is finalized");
  ::_exit(0);
}

}  // namespace

TEST_CASE("twenty borrowers are killed at any moment while twenty borrow: these notice nothing, those hold nothing") {
  constexpr std::size_t many = 20;
  for (int i = 0; i < 2 * times_over(); ++i) {
    const bool by_key = i % 2 == 0;
    CAPTURE(way_in_words(by_key), i);
    Story story(240s);
    const Endpoint endpoint = Endpoint::path(story.file("lender"));
    story.actor("A", [&](Actor& me) {
      const Party a(me);
      Told told;
      {
        Lender lender = me.must(Lender::at(a.runtime, endpoint, told.options()), "A has an endpoint");
        Serving serving = me.must(serve(lender), "a thread serves");
        with_memory(by_key, a, [&](auto make) {
          Lent lent = me.must(lender.offer("m", make()), "A offers");
          me.pause_until_ended("K");
          comes(
              me, [&] { return me.must(lent.holders(), "A looks").empty(); }, "nobody holds it within two seconds", 2s);
          me.must(me.must(std::move(lent).close(Deadline::now()), "A closes at once").close(), "and frees");
        });
        me.expect(told.count(Kind::returned) >= many * 10, "all who lived have returned it");
        me.expect_equal(told.count(Kind::refused), 0U, "nobody was refused");
        me.expect_equal(told.count(Kind::not_imported), 0U, "and everybody could import it");
      }
      a.leave();
    });
    story.actor("K", [&](Actor& me) {
      std::mt19937 random(static_cast<unsigned>(i));
      std::vector<pid_t> victims;
      std::vector<pid_t> others;
      for (std::size_t n = 0; n < many; ++n) {
        victims.push_back(spawn_borrower(endpoint, 1'000'000));
        others.push_back(spawn_borrower(endpoint, 10));
      }
      for (const pid_t victim : victims) {
        std::this_thread::sleep_for(std::chrono::microseconds(random() % 20'000));
        ::kill(victim, SIGKILL);
      }
      for (const pid_t victim : victims) {
        int status = 0;
        me.expect(::waitpid(victim, &status, 0) == victim && WIFSIGNALED(status), "it was killed while it borrowed");
      }
      for (const pid_t other : others) {
        int status = -1;
        me.expect(::waitpid(other, &status, 0) == other && status == 0, "the others come to their end");
      }
    });
    story.run();
    nothing_is_left_of(story);
  }
}
