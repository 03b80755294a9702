// SPDX-License-Identifier: Apache-2.0
// Stopped, not dead: a borrower, and a lender, stopped before each of their system calls in turn. It costs the other
// side its deadline and nothing more: it is told so, it can do everything else meanwhile, and when the stopped one goes
// on all is as if nothing had been.
#include "aftermath.hpp"
#include "lending_parts.hpp"
#include "support/soak.hpp"

#include <sys/socket.h>
#include <unistd.h>

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

using namespace devshare;
using namespace devshare::test;

namespace {

// Leads one process after the other, each stopped some steps further on (or not any more: 0) while something is done,
// and lets it come to its end. `other` says when, and is told the step.
void stop_at_steps(Actor& me, std::string_view other, int stride, const std::function<void()>& body,
                   const std::function<void(int)>& while_stopped) {
  int n = 1;
  for (bool stopped = true; stopped; n += stride) {
    me.receive<int>(other);
    Led led(body);
    stopped = led.to_step(n);
    if (stopped) led.stop();
    while_stopped(stopped ? n : 0);
    if (stopped) led.go_on();
    const bool well = led.ends_well();
    me.expect(well, fmt::format("stopped at step {}, and {}", n, led.end_in_words()));
    me.send(other, stopped ? n : 0);
  }
  me.give("steps", n);
}

template <class R>
void refused_to_the_led(const R& result, Errc expected, std::string_view sentence) {
  const Error& error = detail::plain_error(result.error());
  demand(error.kind() == expected, fmt::format("{}: {}", sentence, error).c_str());
}

// Stopped in a lease it may find it revoked, and begins again.
void borrow_until_used(const Endpoint& endpoint, bool by_key) {
  const Runtime runtime = got(Runtime::open(), "the runtime opens");
  {
    const Device device = got(runtime.device(DeviceId{0}), "the device is there");
    begin_steps();
    for (bool used = false; !used;) {
      auto borrowed = borrow(device, endpoint, "m", 60s);
      if (!borrowed) {
        refused_to_the_led(borrowed, Errc::revoked, "it was taken back meanwhile");
        continue;
      }
      Lease lease = *std::move(borrowed);
      Bytes bytes(lent_size);
      const auto read = copy_to_host(device, bytes, lease.bytes());
      const auto checked = lease.check();
      used = static_cast<bool>(checked);
      if (!used) refused_to_the_led(checked, Errc::revoked, "it was taken back");
      if (!read) refused_to_the_led(read, by_key && !used ? Errc::exporter_gone : Errc{}, "the memory went with it");
      if (read) demand(bytes == pattern(lent_size), "what is read is what was written");
      got(std::move(lease).close(), "it returns it");
    }
    end_steps();
  }
  got(runtime.finalize(), "the runtime is finalized");
  demand(host::counters() == host::Counters{}, "and nothing is left");
}

// The lender of a borrower that stops. It serves others all the while, and waits as long as it likes, or takes its
// memory back.
template <class Make>
void lend_to_who_stops(Actor& me, const Party& a, Lender& lender, bool revokes, Make make) {
  const auto another_borrows = [&] {
    me.send("C", 1);
    me.receive<int>("C");
  };
  const auto free = [&](auto memory) {
    me.expect(a.read(memory.bytes()) == pattern(lent_size), "A has its memory back");
    me.must(std::move(memory).close(), "and frees it");
  };
  int held = 0;
  const auto play_round = [&] {
    Lent lent = me.must(lender.offer("m", make()), "A offers");
    auto more = make();  // while somebody is stopped with the lock of the devices' state in its hands, there is none
    me.send("K", 0);
    if (me.receive<int>("K") != 0) {
      another_borrows();
      if (revokes) {
        free(me.must(std::move(lent).revoke(20ms), "A takes it back"));
        lent = me.must(lender.offer("m", std::move(more)), "and offers anew");
      } else if (auto closed = std::move(lent).close(20ms); closed) {
        free(*std::move(closed));
        lent = me.must(lender.offer("m", std::move(more)), "and offers anew");
      } else {
        refused_as(me, closed, Errc::still_imported, "whoever is stopped holds it");
        lent = std::move(closed).error().take_back();
        ++held;
      }
      me.send("K", 0);
    }
    const int step = me.receive<int>("K");
    comes(
        me, [&] { return me.must(lent.holders(), "A looks").empty(); },
        fmt::format("nobody holds it, stopped at step {}", step));
    free(me.must(std::move(lent).close(Deadline::now()), "A closes"));
    return step;
  };
  std::optional<Inventory> before;
  for (int step = 1; step != 0;) {
    step = play_round();
    if (!before) before = Inventory::now();
    is_as_before(me, *before, fmt::format("as before a borrower was stopped at step {}", step));
  }
  me.send("C", 0);
  me.expect(revokes || held > 0, "some were stopped with a lease");
}

// What a borrower sees of a lender that is stopped for a while: its deadlines are kept, and in the end it is served.
class Patient {
 public:
  Patient(const Party& b, const Endpoint& endpoint, bool by_key, const SharedSight& sight)
      : b_(b), endpoint_(endpoint), by_key_(by_key), sight_(sight) {}

  void play() {
    Lease returned = borrow_in_the_end("m");
    reads(returned);
    b_.me.must(std::move(returned).close(), "it is returned");
    Lease wanted = borrow_in_the_end("wanted");
    reads(wanted);
    wait_until([&] { return wanted.wanted_back(); }, wanted, "it is wanted back");
    reads(wanted);
    b_.me.must(std::move(wanted).close(), "it is returned");
    Lease revoked = borrow_in_the_end("revoked");
    wait_until([&] { return !revoked.check(); }, revoked, "it is taken back");
    refused_as(b_.me, revoked.check(), Errc::revoked, "it is taken back");
    if (!by_key_) reads(revoked);
    b_.me.must(std::move(revoked).close(), "it is closed");
    sight_->done = true;
  }

 private:
  static constexpr int most_tries = 200;
  static constexpr auto short_while = 50ms;

  Lease borrow_in_the_end(std::string_view name) {
    for (int tried = 0; tried < most_tries; ++tried) {
      auto lease = borrow(b_.device, endpoint_, name, short_while);
      if (lease) return *std::move(lease);
      const Errc kind = lease.error().kind();
      b_.me.expect(kind == Errc::timed_out || kind == Errc::no_lender || kind == Errc::no_such_offer,
                   fmt::format("a lender that is stopped: {}", lease.error()));
      sight_->patience = false;
    }
    b_.me.fail(fmt::format("'{}' can never be borrowed", name));
  }

  template <class Condition>
  void wait_until(Condition condition, const Lease& lease, std::string_view sentence) {
    for (int tried = 0; tried < most_tries; ++tried) {
      if (condition()) return;
      const auto waited = lease.wait_newer(99, short_while);
      const Errc kind = waited ? Errc::invalid_argument : waited.error().kind();
      b_.me.expect(kind == Errc::timed_out || kind == Errc::revoked, "nothing newer comes, and not too late");
      if (kind == Errc::timed_out) sight_->patience = false;
    }
    b_.me.fail(fmt::format("in vain: {}", sentence));
  }

  void reads(const Lease& lease) {
    b_.me.expect(b_.read(lease.bytes()) == pattern(lent_size), "the memory is there, whoever is stopped");
  }

  const Party& b_;
  const Endpoint& endpoint_;
  const bool by_key_;
  const SharedSight& sight_;
};

}  // namespace

TEST_CASE(
    "a borrower is stopped at every step: the lender serves others, waits to its deadline or takes its memory back") {
  if (const std::string why = why_no_leading(); !why.empty()) DEVSHARE_SKIP(why);
  for (const bool by_key : {true, false}) {
    for (const bool revokes : {false, true}) {
      CAPTURE(way_in_words(by_key), revokes);
      Story story(240s);
      const Endpoint endpoint = Endpoint::path(story.file("lender"));
      story.actor("A", [&](Actor& me) {
        const Party a(me);
        {
          Lender lender = me.must(Lender::at(a.runtime, endpoint), "A has an endpoint");
          Serving serving = me.must(serve(lender), "a thread serves");
          with_memory(by_key, a, [&](auto make) { lend_to_who_stops(me, a, lender, revokes, make); });
        }
        a.leave();
      });
      story.actor("C", [&](Actor& me) {
        const Party c(me, 0, {{"DEADLINE_MS", "100"}});
        int held_up = 0;
        while (me.receive<int>("A") != 0) {
          auto lease = borrow(c.device, endpoint, "m", 30s);
          if (lease) {
            me.expect(c.read(lease->bytes()) == pattern(lent_size), "another borrows and reads");
            Lease read = *std::move(lease);
            me.must(std::move(read).close(), "and returns it");
          } else {
            // The host runtime takes a lock to count what is held by handle, and its holder was stopped.
            me.expect(!by_key && ++held_up < 40, fmt::format("'{}' {}", lease.error(), held_up));
            refused_as(me, lease, Errc::timed_out, "another is held up, and told so");
          }
          me.send("A", 1);
        }
        c.leave();
      });
      story.actor("K", [&](Actor& me) {
        stop_at_steps(
            me, "A", 1, [&] { borrow_until_used(endpoint, by_key); },
            [&](int step) {
              me.send("A", step);
              if (step != 0) me.receive<int>("A");
            });
      });
      story.run();
      CHECK(story.given<int>("K", "steps") > 20);
      nothing_is_left_of(story);
    }
  }
}

// Every stop costs a deadline or two: at each step of a lender only where time does not matter.
TEST_CASE("a lender is stopped at its steps: its borrower waits to its deadline, and is served when it goes on") {
  if (const std::string why = why_no_leading(); !why.empty()) DEVSHARE_SKIP(why);
  for (const bool by_key : {true, false}) {
    CAPTURE(way_in_words(by_key));
    const int stride = times_over() > 1 ? 1 : 4;
    Story story(240s);
    const SharedSight sight;
    const Endpoint endpoint = Endpoint::path(story.file("lender"));
    story.actor("B", [&](Actor& me) {
      const Party b(me, 0, {{"DEADLINE_MS", "50"}});
      std::optional<Inventory> before;
      for (int step = 1; step != 0;) {
        sight->done = false;
        me.send("K", 0);
        Patient(b, endpoint, by_key, sight).play();
        step = me.receive<int>("K");
        if (!before) before = Inventory::now();
        is_as_before(me, *before, fmt::format("as before a lender was stopped at step {}", step));
      }
      b.leave();
    });
    story.actor("K", [&](Actor& me) {
      stop_at_steps(
          me, "B", stride, [&] { lend_three_ways(endpoint, by_key); },
          [&](int step) {
            if (step == 0) return;
            sight->patience = true;
            comes(
                me, [&] { return !sight->patience || sight->done; },
                fmt::format("B waits no longer for step {}", step));
          });
    });
    story.run();
    CHECK(story.given<int>("K", "steps") > 20);
    nothing_is_left_of(story);
  }
}

TEST_CASE("a borrower that has given up holds nothing, though the lender came to its request later") {
  Story story;
  const Endpoint endpoint = Endpoint::path(story.file("lender"));
  story.actor("A", [&](Actor& me) {
    const Party a(me);
    Told told;
    {
      Lender lender = me.must(Lender::at(a.runtime, endpoint, told.options()), "A has an endpoint");
      {
        Serving serving = me.must(serve(lender), "a thread serves");
        me.pause_until("B", "connected");
      }
      Lent lent = me.must(lender.offer("m", a.allocate(pattern(lent_size))), "A offers");
      me.step("offered");
      me.pause_until("B", "gave up");
      while (me.must(lender.dispatch(), "A looks again") != 0) {
      }
      me.expect_equal(told.count(Kind::returned), 1U, "A lent it, to nobody");
      DeviceMemory back = me.must(std::move(lent).close(Deadline::now()), "and closes at once");
      Serving serving = me.must(serve(lender), "a thread serves again");
      Lent again = me.must(lender.offer("m", std::move(back)), "A offers again");
      me.step("offered again");
      me.pause_until("B", "returned");
      me.must(me.must(std::move(again).close(30s), "A closes").close(), "and frees");
    }
    a.leave();
  });
  story.actor("B", [&](Actor& me) {
    const Party b(me);
    {
      Borrower borrower = me.must(Borrower::connect(b.device, endpoint, 30s), "B connects");
      me.step("connected");
      me.pause_until("A", "offered");
      refused_as(me, borrower.borrow("m", 20ms), Errc::timed_out, "nobody answers");
      me.step("gave up");
      me.pause_until("A", "offered again");
      Lease lease = me.must(borrower.borrow("m", 30s), "the late answer confuses nobody");
      me.expect(b.read(lease.bytes()) == pattern(lent_size), "and the memory is there");
      me.must(std::move(lease).close(), "B returns it");
      me.step("returned");
    }
    b.leave();
  });
  story.run();
}

TEST_CASE("whoever has the other end of a pair may take its time: it was given it, and there is no other") {
  int pair[2];
  REQUIRE(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) == 0);
  Story story;
  story.actor("A", [&](Actor& me) {
    ::close(pair[1]);
    const Party a(me);
    {
      Lender lender = me.must(Lender::at(a.runtime, Endpoint::descriptor(pair[0])), "A has one end");
      Lent lent = me.must(lender.offer("m", a.allocate(pattern(lent_size))), "A offers");
      Serving serving = me.must(serve(lender), "a thread serves");
      me.pause_until_ended("B");
      me.must(me.must(std::move(lent).close(30s), "A closes").close(), "and frees");
    }
    me.must(a.runtime.finalize(), "the runtime is finalized");
  });
  story.actor("B", [&](Actor& me) {
    ::close(pair[0]);
    const Party b(me);
    std::this_thread::sleep_for(5500ms);  // longer than a stranger has
    Lease lease = me.must(borrow(b.device, Endpoint::descriptor(pair[1]), "m", 30s), "B borrows");
    me.expect(b.read(lease.bytes()) == pattern(lent_size), "and reads");
    me.must(std::move(lease).close(), "and returns it");
    me.must(b.runtime.finalize(), "the runtime is finalized");
  });
  story.run();
  ::close(pair[0]);
  ::close(pair[1]);
}
