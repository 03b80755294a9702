// SPDX-License-Identifier: Apache-2.0
// What every call of lending answers when it is given nothing, too much, or an object that is no more; forks; hooks
// that do what they should not; and two ends that cannot agree on how to share.
#include "lending.hpp"
#include "raw_peer.hpp"

#include <atomic>
#include <csignal>
#include <functional>
#include <memory>
#include <optional>
#include <thread>

#include <sys/wait.h>

using namespace devshare;
using namespace devshare::test;

namespace {

constexpr std::size_t size = 4096;

// A lender that serves and a borrower of its own process would import what it exported: those are two actors.
void two(const std::function<void(Actor&, const Party&, const Endpoint&)>& lender,
         const std::function<void(Actor&, const Party&, const Endpoint&)>& borrower, Switches switches = {},
         std::int32_t borrowers_device = 0) {
  Story story;
  const Endpoint endpoint = Endpoint::path(story.file("lender"));
  story.actor("A", [&](Actor& me) {
    const Party a(me, 0, switches);
    lender(me, a, endpoint);
    a.leave();
  });
  story.actor("B", [&](Actor& me) {
    const Party b(me, borrowers_device, switches);
    borrower(me, b, endpoint);
    b.leave();
    me.step("done");
  });
  story.run();
}

void one(const std::function<void(Actor&, const Party&, const Endpoint&)>& part) {
  Story story;
  const Endpoint endpoint = Endpoint::path(story.file("lender"));
  story.actor("A", [&](Actor& me) {
    const Party a(me);
    part(me, a, endpoint);
  });
  story.run();
}

// What every call of an object answers that holds nothing any more.
template <class O>
void answers(Actor& me, Lent<O>& lent, Errc expected) {
  refused_as(me, lent.holders(), expected, "Lent::holders");
  refused_as(me, lent.publish(), expected, "Lent::publish");
  refused_as(me, lent.withdraw(), expected, "Lent::withdraw");
  me.expect_equal(lent.generation(), 0U, "Lent::generation");
  auto closed = std::move(lent).close(10s);
  refused_as(me, closed, expected, "Lent::close");
  Lent<O> back = std::move(closed).error().take_back();
  refused_as(me, std::move(back).revoke(10s), expected, "Lent::revoke");
}
void answers(Actor& me, const Party& a, Lender& lender, Errc expected, bool allocates = true) {
  me.expect_equal(lender.native_handle(), -1, "Lender::native_handle");
  refused_as(me, lender.dispatch(), expected, "Lender::dispatch");
  refused_as(me, lender.dispatch(Deadline::never()), expected, "Lender::dispatch, for ever");
  refused_as(me, serve(lender), expected, "serve");
  if (allocates) {
    auto refused = lender.offer("m", a.allocate(size));
    refused_as(me, refused, expected, "Lender::offer");
    me.must(std::move(refused).error().take_back().close(), "the memory comes back");
  }
  refused_as(me, std::move(lender).close(), expected, "Lender::close");
}
void answers(Actor& me, Borrower& borrower, Errc expected) {
  const std::vector<std::string_view> names{"m", "n"};
  refused_as(me, borrower.borrow("m", 10s), expected, "Borrower::borrow");
  refused_as(me, borrower.borrow_to_read("m", 10s), expected, "Borrower::borrow_to_read");
  refused_as(me, borrower.borrow_all(names, 10s), expected, "Borrower::borrow_all");
  refused_as(me, borrower.borrow_all({}, 10s), expected, "Borrower::borrow_all of nothing");
  refused_as(me, borrower.borrow_all_to_read({}, 10s), expected, "Borrower::borrow_all_to_read of nothing");
  refused_as(me, std::move(borrower).close(), expected, "Borrower::close");
}
void answers(Actor& me, Lease& lease, Errc expected) {
  refused_as(me, lease.check(), expected, "Lease::check");
  refused_as(me, lease.checked_bytes(), expected, "Lease::checked_bytes");
  refused_as(me, lease.wait_newer(0, Deadline::never()), expected, "Lease::wait_newer");
  refused_as(me, lease.native_handle(), expected, "Lease::native_handle");
  me.expect(!lease.wanted_back(), "Lease::wanted_back");
  me.expect_equal(lease.generation(), 0U, "Lease::generation");
  refused_as(me, std::move(lease).close(), expected, "Lease::close");
}

}  // namespace

TEST_CASE(
    "an endpoint that cannot be one is invalid_argument for both sides, and no descriptor that is given is lost",
          "[any library]") {
  one([](Actor& me, const Party& a, const Endpoint&) {
    int pipe[2];
    me.expect(::pipe(pipe) == 0, "a pipe");
    const Endpoint none[] = {
        Endpoint::path(""),
        Endpoint::path(std::string(108, 'x')),
        Endpoint::path(std::string(100'000, 'x')),
        Endpoint::abstract(""),
        Endpoint::abstract(std::string(108, 'x')),
        Endpoint::path(std::string_view("a\0b", 3)),
        Endpoint::descriptor(-1),
        Endpoint::descriptor(INT32_MIN),
        Endpoint::descriptor(9999),
        Endpoint::descriptor(0),
        Endpoint::descriptor(pipe[0]),
        Endpoint::abstract(std::string_view("\0", 1)),
    };
    const std::size_t before = count_descriptors();
    for (const Endpoint& endpoint : none) {
      refused_as(me, Lender::at(a.runtime, endpoint), Errc::invalid_argument, "for a lender");
      refused_as(me, Borrower::connect(a.device, endpoint, 10s), Errc::invalid_argument, "for a borrower");
      refused_as(me, borrow(a.device, endpoint, "m", 10s), Errc::invalid_argument, "in one step");
      refused_as(me, borrow_to_read(a.device, endpoint, "m", 10s), Errc::invalid_argument, "to read");
    }
    me.expect_equal(count_descriptors(), before, "what was refused is still the caller's");
    refused_as(me, borrow(a.device, Endpoint::path("/proc/self/no such/s"), "m", 20ms), Errc::no_lender,
               "a missing folder");
    refused_as(me, borrow(a.device, Endpoint::path("/dev/null"), "m", 20ms), Errc::no_lender,
               "a file that is no socket");
    me.must(a.runtime.finalize(), "A leaves");
  });
}

TEST_CASE("names, slices and access out of bounds are refused, and the memory comes back usable", "[any library]") {
  two(
      [](Actor& me, const Party& a, const Endpoint& endpoint) {
        Lender lender = me.must(Lender::at(a.runtime, endpoint), "A has an endpoint");
        DeviceMemory memory = a.allocate(pattern(size));
        for (const std::string& name :
             {std::string(), std::string(97, 'n'), std::string(100'000, 'n'), std::string("a\0b", 3)}) {
          auto refused = lender.offer(name, std::move(memory));
          refused_as(me, refused, Errc::invalid_argument, "a name that is none");
          memory = std::move(refused).error().take_back();
          me.expect(a.read(memory.bytes()) == pattern(size), "the memory is as it was");
        }
        DeviceMemory moved = std::move(memory);
        refused_as(me, lender.offer("m", std::move(memory)), Errc::closed, "memory that was moved from");
        Lent lent = me.must(lender.offer(std::string(96, 'n'), std::move(moved)), "the longest name");
        auto again = lender.offer(std::string(96, 'n'), a.allocate(size));
        refused_as(me, again, Errc::already_offered, "a name of another offer");
        me.must(std::move(again).error().take_back().close(), "its memory comes back");
        const Lent read_only =
            me.must(lender.offer("r", a.allocate(pattern(size)), {.access = AccessMode::read_only}), "one to read");
        Serving serving = me.must(serve(lender), "a thread serves");
        me.step("offered");
        me.pause_until("B", "done");
        me.must(me.must(std::move(lent).close(10s), "A closes").close(), "and frees");
      },
      [](Actor& me, const Party& b, const Endpoint& endpoint) {
        me.pause_until("A", "offered");
        const std::string name(96, 'n');
        Borrower borrower = me.must(Borrower::connect(b.device, endpoint, 10s), "B connects");
        for (const std::string& none :
             {std::string(), std::string(97, 'n'), std::string(100'000, 'n'), std::string("a\0b", 3)}) {
          refused_as(me, borrower.borrow(none, 10s), Errc::invalid_argument, "a name that is none");
          const std::vector<std::string_view> among{name, none};
          refused_as(me, borrower.borrow_all(among, 10s), Errc::invalid_argument, "among others");
        }
        me.expect(me.must(borrower.borrow_all({}, 10s), "B borrows nothing").empty(), "which is nothing");
        for (const Slice slice : {Slice{0, size + 1}, Slice{size, 1}, Slice{size + 1, 0}, Slice{SIZE_MAX, 1},
                                  Slice{1, SIZE_MAX}, Slice{SIZE_MAX, SIZE_MAX}, Slice{1, size}}) {
          refused_as(me, borrower.borrow(name, 10s, slice), Errc::out_of_range,
                     fmt::format("{} bytes from {}", slice.size, slice.offset));
        }
        {
          const Lease part = me.must(borrower.borrow(name, 10s, {size - 1, 1}), "the last byte");
          me.expect_equal(part.size(), 1U, "and no more");
        }
        refused_as(me, borrower.borrow("r", 10s), Errc::access_mismatch, "what is lent to read");
        {
          const ConstLease lease = me.must(borrower.borrow_to_read("r", 10s), "is read");
          me.expect(b.read(lease.bytes()) == pattern(size), "as it is");
        }
        refused_as(me, borrower.borrow("no", time_to_answer), Errc::no_such_offer, "there is no such offer");
        Lease lease = me.must(borrower.borrow(name, Deadline::never()), "no deadline");
        refused_as(me, lease.wait_newer(UINT64_MAX, 10ms), Errc::timed_out, "nothing is newer than the newest");
      });
}

TEST_CASE("objects that were moved from or closed answer closed, whatever they are asked", "[any library]") {
  two(
      [](Actor& me, const Party& a, const Endpoint& endpoint) {
        Lender lender = me.must(Lender::at(a.runtime, endpoint), "A has an endpoint");
        Lent lent = me.must(lender.offer("m", a.allocate(size)), "A offers");
        Serving serving = me.must(serve(lender), "a thread serves");
        me.step("offered");
        me.pause_until("B", "done");
        Lent moved_lent = std::move(lent);
        answers(me, lent, Errc::closed);
        me.must(me.must(std::move(moved_lent).close(10s), "A closes").close(), "and frees");
        answers(me, moved_lent, Errc::closed);
        Serving moved_serving = std::move(serving);
        refused_as(me, std::move(serving).stop(), Errc::closed, "Serving::stop");
        Lender moved_lender = std::move(lender);
        answers(me, a, lender, Errc::closed);
        me.must(std::move(moved_lender).close(), "the lender ends before its thread");
        answers(me, a, moved_lender, Errc::closed);
        me.must(std::move(moved_serving).stop(), "and the thread");
        refused_as(me, std::move(moved_serving).stop(), Errc::closed, "once");
      },
      [](Actor& me, const Party& b, const Endpoint& endpoint) {
        me.pause_until("A", "offered");
        Borrower borrower = me.must(Borrower::connect(b.device, endpoint, 10s), "B connects");
        Lease lease = me.must(borrower.borrow("m", 10s), "B borrows");
        Lease moved_lease = std::move(lease);
        answers(me, lease, Errc::closed);
        Borrower moved = std::move(borrower);
        answers(me, borrower, Errc::closed);
        me.must(std::move(moved).close(), "the connection ends before the lease");
        answers(me, moved, Errc::closed);
        me.must(moved_lease.check(), "which lives");
        me.must(std::move(moved_lease).close(), "until it is closed");
        answers(me, moved_lease, Errc::closed);
      });
}

TEST_CASE("once the runtime is finalized every object answers runtime_gone, and ends without a word (B005)",
          "[any library]") {
  Story story;
  const Endpoint endpoint = Endpoint::path(story.file("lender"));
  story.actor("A", [&](Actor& me) {
    const Party a(me);
    Lender lender = me.must(Lender::at(a.runtime, endpoint), "A has an endpoint");
    Lent lent = me.must(lender.offer("m", a.allocate(pattern(size))), "A offers");
    Lent unread = me.must(lender.offer("n", a.allocate(pattern(size))), "and more");
    Serving serving = me.must(serve(lender), "a thread serves");
    me.pause_until("B", "done");
    me.must(a.runtime.finalize(), "the runtime is finalized under them");
    answers(me, unread, Errc::runtime_gone);
    answers(me, lent, Errc::runtime_gone);
    refused_as(me, Lender::at(a.runtime, endpoint), Errc::runtime_gone, "Lender::at");
    answers(me, a, lender, Errc::runtime_gone, false);
    refused_as(me, std::move(serving).stop(), Errc::runtime_gone, "Serving::stop");
  });
  story.actor("B", [&](Actor& me) {
    const Party b(me);
    Borrower borrower = me.must(Borrower::connect(b.device, endpoint, 10s), "B connects");
    Lease lease = me.must(borrower.borrow("m", 10s), "B borrows");
    me.must(b.runtime.finalize(), "the runtime is finalized under them");
    refused_as(me, borrow(b.device, endpoint, "m", 10s), Errc::runtime_gone, "borrow");
    answers(me, lease, Errc::runtime_gone);
    answers(me, borrower, Errc::runtime_gone);
    me.step("done");
  });
  story.run();
}

TEST_CASE("a child has none of its parent's lending, and does not hide its parent's death (B064)", "[any library]") {
  Story story;
  const Endpoint endpoint = Endpoint::path(story.file("lender"));
  const Endpoint second = Endpoint::path(story.file("second"));
  // Runs `part` in a child, which says "all is well" by its exit status; then the child stays until it is killed.
  const auto in_fork = [](Actor& me, const std::function<void(Actor&)>& part) {
    int ends[2];
    me.expect(::pipe(ends) == 0, "a pipe");
    const pid_t child = ::fork();
    if (child == 0) {
      ::setpgid(0, 0);
      part(me);
      (void)!::write(ends[1], "x", 1);
      ::alarm(120);
      for (;;) ::pause();
    }
    char word = 0;
    ::close(ends[1]);
    me.expect(::read(ends[0], &word, 1) == 1, "the child has asked everything");
    ::close(ends[0]);
    return child;
  };
  story.actor("A", [&](Actor& me) {
    const Party a(me);
    Lender lender = me.must(Lender::at(a.runtime, endpoint), "A has an endpoint");
    Lent lent = me.must(lender.offer("m", a.allocate(pattern(size))), "A offers");
    Serving serving = me.must(serve(lender), "a thread serves");
    me.pause_until("B", "holds");
    const pid_t child = in_fork(me, [&](Actor& in) {
      answers(in, lent, Errc::forked);
      answers(in, a, lender, Errc::forked, false);
      refused_as(in, std::move(serving).stop(), Errc::forked, "Serving::stop");
    });
    me.send("C", child);
    me.must(lent.holders(), "the parent goes on");
    me.must(lent.publish(), "and on");
    me.step("forked");
    me.pause_until("B", "forked");
    me.step("dies");
  });
  story.kill("A", at("dies"));
  story.actor("B", [&](Actor& me) {
    const Party b(me);
    Borrower borrower = me.must(Borrower::connect(b.device, endpoint, 10s), "B connects");
    Lease lease = me.must(borrower.borrow("m", 10s), "B borrows");
    Lease of_c = me.must(borrow(b.device, second, "m", 10s), "and of C");
    me.step("holds");
    me.pause_until("A", "forked");
    const pid_t child = in_fork(me, [&](Actor& in) {
      answers(in, lease, Errc::forked);
      answers(in, borrower, Errc::forked);
    });
    me.send("C", child);
    me.expect_equal(me.must(lease.wait_newer(1, 10s), "the parent hears news"), 2U, "as before");
    me.must(lease.check(), "and has the memory");
    me.step("forked");
    me.pause_until_ended("A");
    me.expect(soon([&] { return !lease.check(); }), "A's death is heard, though its child lives");
    me.expect(lease.wanted_back(), "by the connection too");
    refused_as(me, borrower.borrow("m", 10s), Errc::exporter_gone, "nothing more is lent");
    me.step("dies");
  });
  story.kill("B", at("dies"));
  story.actor("C", [&](Actor& me) {
    const Party c(me);
    Told told;
    Lender lender = me.must(Lender::at(c.runtime, second, told.options()), "C has an endpoint");
    Lent lent = me.must(lender.offer("m", c.allocate(pattern(size))), "C offers");
    Serving serving = me.must(serve(lender), "a thread serves");
    const auto of_a = me.receive<pid_t>("A");
    const auto of_b = me.receive<pid_t>("B");
    me.pause_until_ended("B");
    me.expect(soon([&] { return told.count(Kind::died) == 1; }), "B's death is heard, though its child lives");
    me.must(me.must(std::move(lent).close(Deadline::now()), "nobody holds it").close(), "and it is free");
    for (const pid_t child : {of_a, of_b}) {
      me.expect(::kill(child, 0) == 0, "a child is there still");
      ::kill(child, SIGKILL);
    }
  });
  story.run();
}

TEST_CASE(
    "a hook may do anything but end its lender: close, revoke, offer, publish, dispatch, stop, borrow and throw",
          "[any library]") {
  struct Hook {
    Actor& me;
    const Party& a;
    Endpoint endpoint;
    Lender* lender = nullptr;
    std::optional<Lent<DeviceMemory>> lent{};
    std::optional<Lent<DeviceMemory>> other{};
    std::optional<Lent<DeviceMemory>> offered{};
    std::optional<Serving> serving{};
    std::atomic<int> calls{0};
    std::atomic<bool> ready{false};

    static void called(const LendingEvent& event, void* user) {
      Hook& hook = *static_cast<Hook*>(user);
      if (!hook.ready) return;
      hook.act(event);
      ++hook.calls;
#if defined(__cpp_exceptions)
      throw 1;
#endif
    }
    void act(const LendingEvent& event) {
      me.expect_equal(me.must(lender->dispatch(), "dispatch"), 0U, "nothing is done inside of the work");
      if (event.kind == LendingEvent::Kind::imported && event.offer == "m") {
        auto closed = std::move(*lent).close(10s);
        refused_as(me, closed, Errc::still_imported, "close under a holder does not wait for itself");
        lent = std::move(closed).error().take_back();
        me.must(lent->publish(), "publish");
        me.expect_equal(me.must(lent->holders(), "holders").size(), 1U, "who has just come");
        if (!offered) offered = me.must(lender->offer("n", a.allocate(pattern(size))), "offer");
        refused_as(me, borrow(a.device, endpoint, "n", 20ms), Errc::timed_out, "who borrows of itself waits");
        me.must(me.must(std::move(*other).close(10s), "an offer that nobody holds is closed").close(), "and freed");
        other.reset();
      } else if (event.kind == LendingEvent::Kind::returned && event.offer == "m") {
        me.must(me.must(std::move(*lent).revoke(10s), "revoke").close(), "and freed");
        lent.reset();
      } else if (event.kind == LendingEvent::Kind::imported && event.offer == "n") {
        me.must(me.must(std::move(*offered).revoke(10s), "revoke under its holder").close(), "and freed");
        offered.reset();
        refused_as(me, std::move(*serving).stop(), Errc::in_use,
                   "the thread cannot wait for itself, and ends afterwards");
      }
    }
  };
  two(
      [](Actor& me, const Party& a, const Endpoint& endpoint) {
        Hook hook{me, a, endpoint};
        {
          Lender lender =
              me.must(Lender::at(a.runtime, endpoint, {.hook = &Hook::called, .user = &hook}), "A has an endpoint");
          hook.lender = &lender;
          hook.lent = me.must(lender.offer("m", a.allocate(pattern(size))), "A offers");
          hook.other = me.must(lender.offer("o", a.allocate(pattern(size))), "and what nobody borrows");
          hook.serving = me.must(serve(lender), "a thread serves");
          hook.ready = true;
          me.step("serves");
          me.expect(soon([&] { return hook.calls >= 2; }), "the hook is called");
          Serving again = me.must(serve(lender), "the lender goes on");
          me.expect(soon([&] { return hook.calls >= 3; }), "and so does the hook");
          me.expect(!hook.lent && !hook.other && !hook.offered, "which has closed all");
          hook.ready = false;
          me.pause_until("B", "done");
          me.must(std::move(again).stop(), "this thread ends as any other");
        }
      },
      [](Actor& me, const Party& b, const Endpoint& endpoint) {
        me.pause_until("A", "serves");
        Borrower borrower = me.must(Borrower::connect(b.device, endpoint, 10s), "B connects");
        Lease lease = me.must(borrower.borrow("m", 10s), "B borrows");
        me.expect_equal(me.must(lease.wait_newer(1, 10s), "the hook publishes"), 2U, "the next");
        Lease offered = me.must(borrower.borrow("n", 10s), "what the hook offers");
        me.must(std::move(lease).close(), "B returns");
        me.expect(soon([&] { return !offered.check(); }), "what the hook revokes is revoked");
        refused_as(me, offered.check(), Errc::revoked, "and says so");
      });
}

TEST_CASE("who cannot import what was chosen is told so, by the lender, before any ticket (B101)", "[any library]") {
  two(
      [](Actor& me, const Party& a, const Endpoint& endpoint) {
        Told told;
        Lender lender = me.must(Lender::at(a.runtime, endpoint, told.options()), "A has an endpoint");
        Lent key = me.must(lender.offer("key", a.allocate(size)), "A offers by key");
        Lent handle = me.must(lender.offer("handle", a.map(size)), "and by handle");
        Serving serving = me.must(serve(lender), "a thread serves");
        me.step("serves");
        me.pause_until("B", "done");
        const auto all = told.errors(Kind::refused);
        me.expect(std::count(all.begin(), all.end(), Errc::mechanism_mismatch) == 3 &&
                      std::count(all.begin(), all.end(), Errc::already_exported_as) == 2,
                  "A was told the same");
        me.must(me.must(std::move(key).close(10s), "A closes").close(), "and frees");
        me.must(me.must(std::move(handle).close(10s), "A closes").close(), "and frees");
      },
      [](Actor& me, const Party& b, const Endpoint& endpoint) {
        me.pause_until("A", "serves");
        const auto asks = [&](Mechanisms can, std::string_view name, Errc expected) {
          const RawPeer peer = RawPeer::connect(endpoint);
          Message hello = message_of(MessageType::hello);
          hello.mechanisms = can;
          me.expect(peer.introduce(hello) && peer.receive_type() == MessageType::welcome, "somebody who can less");
          me.expect(peer.send(request_for(name, 1)), "asks");
          const auto answer = peer.receive();
          me.expect(answer && answer->type == MessageType::refused &&
                        answer->error.kind == static_cast<std::uint16_t>(expected),
                    fmt::format("and is refused as {}", name_of(expected)));
        };
        asks({Mechanism::v1, Mechanism::v2, Mechanism::fabric}, "key", Errc::mechanism_mismatch);
        asks({Mechanism::by_key}, "handle", Errc::mechanism_mismatch);
        asks({}, "handle", Errc::mechanism_mismatch);
        Borrower borrower = me.must(Borrower::connect(b.device, endpoint, 10s), "B can all");
        Lease handle = me.must(borrower.borrow("handle", 10s), "and borrows");
        Mechanisms others{Mechanism::v1, Mechanism::v2, Mechanism::fabric};
        others = Mechanisms::from_message(others.to_message() & ~Mechanisms{handle.mechanism()}.to_message());
        asks(others, "handle", Errc::already_exported_as);
        asks({Mechanism::by_key}, "handle", Errc::already_exported_as);
        Lease key = me.must(borrower.borrow("key", 10s), "B borrows by key");
        me.expect(key.mechanism() == Mechanism::by_key, "which is what it is");
      });
}

TEST_CASE("where devices reach each other in one direction only, both sides are told the same (B101)") {
  two(
      [](Actor& me, const Party& a, const Endpoint& endpoint) {
        Told told;
        Lender lender = me.must(Lender::at(a.runtime, endpoint, told.options()), "A has an endpoint");
        Lent key = me.must(lender.offer("key", a.allocate(size)), "A offers by key");
        Lent handle = me.must(lender.offer("handle", a.map(size)), "and by handle");
        Serving serving = me.must(serve(lender), "a thread serves");
        me.step("serves");
        me.pause_until("B", "done");
        me.expect(soon([&] { return told.count(Kind::not_imported) == 2; }), "A hears of it");
        for (const Errc error : told.errors(Kind::not_imported)) {
          me.expect(error == Errc::peer_access_impossible, "why");
        }
        me.must(me.must(std::move(key).close(Deadline::now()), "nobody holds it").close(), "and frees");
        me.must(me.must(std::move(handle).close(Deadline::now()), "nobody holds it").close(), "and frees");
      },
      [](Actor& me, const Party& b, const Endpoint& endpoint) {
        me.pause_until("A", "serves");
        for (const char* const name : {"key", "handle"}) {
          refused_as(me, borrow(b.device, endpoint, name, 10s), Errc::peer_access_impossible, name);
        }
      },
      {{"PEERS", "00/10"}}, 1);
}

TEST_CASE("who waits for an offer of a lender that closes its endpoint is told at once that there will be none",
          "[any library]") {
  Story story;
  const Endpoint endpoint = Endpoint::path(story.file("lender"));
  story.actor("A", [&](Actor& me) {
    const Party a(me);
    {
      Lender lender = me.must(Lender::at(a.runtime, endpoint), "A has an endpoint");
      Lent lent = me.must(lender.offer("m", a.allocate(pattern(size))), "A offers");
      Serving serving = me.must(serve(lender), "a thread serves");
      me.pause_until("B", "waits");
      me.must(std::move(lender).close(), "A closes its endpoint");
      me.pause_until("B", "was told");
      me.must(me.must(std::move(lent).close(Deadline::now()), "A closes what nobody has").close(), "and frees");
    }
    a.leave();
  });
  story.actor("B", [&](Actor& me) {
    RawPeer peer;
    me.expect(soon([&] { return static_cast<bool>(peer = RawPeer::connect(endpoint)); }), "B connects");
    me.expect(peer.introduce(message_of(MessageType::hello)), "hello");
    me.expect(peer.receive_type() == MessageType::welcome, "welcome");
    me.expect(peer.send(request_for("late", 7, true)), "B asks for what is not there yet");
    me.expect(peer.receive_type() == MessageType::waiting, "and waits");
    me.step("waits");
    me.expect(peer.has_word(10'000), "B is told something");
    const auto answer = peer.receive();
    me.expect(answer && answer->type == MessageType::refused && answer->request == 7 &&
                  answer->error.kind == static_cast<std::uint16_t>(Errc::no_such_offer),
              "that there is none");
    me.expect(peer.has_word(10'000) && !peer.receive(), "and that was the last word");
    me.step("was told");
  });
  story.run();
}
