// SPDX-License-Identifier: Apache-2.0
// Faults that are known of sharing by hand, once more where the sharing is lending's.
#include "lend_one.hpp"
#include "support/descriptors.hpp"
#include "support/few_descriptors.hpp"
#include "support/sanitizers.hpp"

#include <barrier>
#include <csignal>
#include <functional>
#include <iterator>
#include <set>
#include <thread>

using namespace devshare;
using namespace devshare::test;

namespace {

constexpr std::size_t size = 64 * 1024;

// A lends "m", of the bytes pattern(size).
template <class Meanwhile>
void play(Switches switches, Meanwhile meanwhile, const std::function<void(const Party&, const Endpoint&)>& use) {
  lend_and_use({.switches = switches}, [](const Party& a) { return a.allocate(pattern(size)); }, meanwhile, use);
}

void play(Switches switches, const std::function<void(const Party&, const Endpoint&)>& use) {
  play(switches, [](const Party&, Lender&, Lent<DeviceMemory>&) {}, use);
}

}  // namespace

TEST_CASE("what was closed and freed before it was borrowed is no offer, the second time too, and leaves nothing (B003, B009)",
          "[any library]") {
  Story story;
  const Endpoint endpoint = Endpoint::path(story.file("lender"));
  story.actor("A", [&](Actor& me) {
    const Party a(me);
    {
      Lender lender = me.must(Lender::at(a.runtime, endpoint), "A has an endpoint");
      Serving serving = me.must(serve(lender), "a thread serves");
      Lent lent = me.must(lender.offer("m", a.allocate(size)), "A offers");
      me.pause_until("B", "has had it");
      me.must(me.must(std::move(lent).close(30s), "A closes").close(), "and frees");
      me.step("freed");
      me.pause_until("B", "done");
    }
    a.leave();
  });
  story.actor("B", [&](Actor& me) {
    const Party b(me);
    {
      Borrower borrower = me.must(Borrower::connect(b.device, endpoint, 10s), "B connects");
      me.must(me.must(borrower.borrow("m", 10s), "B borrows").close(), "and returns");
      me.step("has had it");
      me.pause_until("A", "freed");
      const std::size_t descriptors = count_descriptors();
      for (int i = 0; i < 2; ++i) {
        refused_as(me, borrower.borrow("m", time_to_answer), Errc::no_such_offer, "it is no more");
      }
      me.expect_equal(count_descriptors(), descriptors, "no descriptor is left");
    }
    b.leave();
    me.step("done");
  });
  story.run();
}

TEST_CASE("a runtime that numbers processes otherwise is asked for the number: the handshake has the right one (B015)",
          "[any library]") {
  play({{"DEVSHARE_HOST_BARE_PID_OFFSET", "100000"}}, [](const Party& b, const Endpoint& endpoint) {
    Lease lease = b.me.must(borrow(b.device, endpoint, "m", 30s), "B borrows");
    b.me.expect(b.read(lease.bytes()) == pattern(size), "with the right bytes");
  });
}

TEST_CASE("a thousand leases of two parts of one process, interleaved, are one import at a time and none at the end (B035, B037)") {
  play({}, [](const Party& b, const Endpoint& endpoint) {
    Borrower one = b.me.must(Borrower::connect(b.device, endpoint, 30s), "the one part connects");
    Borrower other = b.me.must(Borrower::connect(b.device, endpoint, 30s), "and the other");
    host::record_calls(true);
    for (int round = 0; round < 500; ++round) {
      Lease first = b.me.must(one.borrow("m", 30s), "the one borrows");
      Lease second = b.me.must(other.borrow("m", 30s), "and the other");
      b.me.expect(first.bytes().data() == second.bytes().data(), "at the same place");
      b.me.expect_equal(host::counters().key_opens, 1U, "the runtime has one import");
      b.me.must(std::move(first).close(), "the one returns");
      std::byte last{};
      b.me.must(copy_to_host(b.device, std::span(&last, 1), second.bytes().last(1)), "the other reads on");
      b.me.must(std::move(second).close(), "and returns");
      b.me.expect_equal(host::counters().key_opens, 0U, "the last one closes");
    }
    b.me.expect_equal(calls_of(acl::Entry::aclrtIpcMemImportByKey), 500U, "once a round");
    b.me.expect_equal(calls_of(acl::Entry::aclrtIpcMemClose), 500U, "and closed as often");
    host::record_calls(false);
  });
}

TEST_CASE("new memory at an old address, under an old name, is new: nobody who had the old sees it as that (B041)",
          "[any library]") {
  Story story;
  const Endpoint endpoint = Endpoint::path(story.file("lender"));
  story.actor("A", [&](Actor& me) {
    const Party a(me);
    {
      Lender lender = me.must(Lender::at(a.runtime, endpoint), "A has an endpoint");
      Serving serving = me.must(serve(lender), "a thread serves");
      Lent lent = me.must(lender.offer("m", a.allocate(pattern(size, 1))), "A offers");
      const void* const address = address_of(lent.bytes());
      me.pause_until("B", "holds the old");
      me.must(me.must(std::move(lent).revoke(Deadline::now()), "A takes it back").close(), "and frees");
      Lent next = me.must(lender.offer("m", a.allocate(pattern(size, 2))), "A offers new memory");
      me.expect(address_of(next.bytes()) == address, "which lies where the old lay");
      me.step("new");
      me.pause_until("B", "done");
      me.must(me.must(std::move(next).close(30s), "A closes").close(), "and frees");
    }
    a.leave();
  });
  story.actor("B", [&](Actor& me) {
    const Party b(me);
    {
      Borrower borrower = me.must(Borrower::connect(b.device, endpoint, 30s), "B connects");
      Lease old = me.must(borrower.borrow("m", 30s), "B borrows");
      me.step("holds the old");
      me.pause_until("A", "new");
      Lease young = me.must(borrower.borrow("m", 30s), "and borrows by the same name");
      me.expect(b.read(young.bytes()) == pattern(size, 2), "what is offered now");
      refused_as(me, old.check(), Errc::revoked, "the old lease is over");
      Bytes bytes(size);
      me.expect(!copy_to_host(b.device, bytes, old.bytes()), "and shows nothing, least of all the new");
    }
    b.leave();
    me.step("done");
  });
  story.run();
}

TEST_CASE("a thousand rounds of connecting, borrowing and returning, in four threads, leave no descriptor on either side (B049)",
          "[any library]") {
  constexpr int threads = 4;
  std::size_t before = 0;
  play(
      {},
      [&](const Party& a, Lender&, Lent<DeviceMemory>& lent) {
        a.me.pause_until("B", "warm");
        a.me.expect(soon([&] { return a.me.must(lent.holders(), "A looks").empty(); }), "nobody holds it yet");
        before = count_descriptors();
        a.me.step("counted");
        a.me.pause_until("B", "over");
        a.me.expect(soon([&] { return count_descriptors() <= before; }), "A has none more than before");
      },
      [](const Party& b, const Endpoint& endpoint) {
        const auto round = [&] {
          Lease lease = b.me.must(borrow(b.device, endpoint, "m", 30s), "it borrows");
          b.me.must(std::move(lease).close(), "and returns");
        };
        round();
        const std::size_t first = count_descriptors();
        b.me.step("warm");
        b.me.pause_until("A", "counted");
        std::vector<std::thread> all;
        for (int i = 0; i < threads; ++i) {
          all.emplace_back([&] {
            for (int r = 0; r < 1000 / threads; ++r) round();
          });
        }
        for (std::thread& each : all) each.join();
        b.me.expect_equal(count_descriptors(), first, "B has none more than before");
        b.me.step("over");
      });
}

TEST_CASE("a borrower whose table of descriptors is full says fd_limit, leaves nothing, and borrows when one is free (B053)") {
  if (sees_leaks()) DEVSHARE_SKIP("a sanitizer needs descriptors of its own, and takes what it lacks for a fault");
  play({}, [](const Party& b, const Endpoint& endpoint) {
    Borrower borrower = b.me.must(Borrower::connect(b.device, endpoint, 30s), "B connects");
    b.me.must(b.me.must(borrower.borrow("m", 30s), "B borrows").close(), "and returns");
    const std::size_t before = count_descriptors();
    {
      const FewDescriptors none(0);
      refused_as(b.me, borrower.borrow("m", 30s), Errc::fd_limit, "there is none for the memory");
      refused_as(b.me, borrow(b.device, endpoint, "m", 30s), Errc::fd_limit, "nor for a connection");
    }
    b.me.expect_equal(count_descriptors(), before, "nothing is left of it");
    b.me.must(b.me.must(borrower.borrow("m", 30s), "then B borrows").close(), "and returns");
  });
}

TEST_CASE("a borrower that ends, or is killed, takes nothing with it: another goes on and a third comes (B068)",
          "[any library]") {
  for (const bool killed : {false, true}) {
    CAPTURE(killed);
    Story story;
    const Endpoint endpoint = Endpoint::path(story.file("lender"));
    story.actor("A", [&](Actor& me) {
      const Party a(me);
      {
        Lender lender = me.must(Lender::at(a.runtime, endpoint), "A has an endpoint");
        Serving serving = me.must(serve(lender), "a thread serves");
        Lent lent = me.must(lender.offer("m", a.allocate(pattern(size))), "A offers");
        me.pause_until("C", "done");
        me.must(me.must(std::move(lent).close(30s), "A closes").close(), "and frees");
      }
      a.leave();
    });
    story.actor("B", [&](Actor& me) {
      const Party b(me);
      const Lease lease = me.must(borrow(b.device, endpoint, "m", 30s), "B borrows");
      me.step("holds");
      me.pause_until("C", "holds");
      if (killed) ::raise(SIGKILL);
    });
    if (killed) story.ends("B", by_signal(SIGKILL));
    story.actor("C", [&](Actor& me) {
      const Party c(me);
      {
        Lease lease = me.must(borrow(c.device, endpoint, "m", 30s), "C borrows");
        me.step("holds");
        me.pause_until_ended("B");
        me.must(lease.check(), "C has it still");
        me.expect(c.read(lease.bytes()) == pattern(size), "with its bytes");
        Lease more = me.must(borrow(c.device, endpoint, "m", 30s), "and a newcomer gets in");
        me.expect(c.read(more.bytes()) == pattern(size), "to the same bytes");
      }
      c.leave();
      me.step("done");
    });
    story.run();
  }
}

TEST_CASE("a lender that leaves main with a lease out is held up by nothing, and its borrower is told (B070)",
          "[any library]") {
  Story story;
  const Endpoint endpoint = Endpoint::path(story.file("lender"));
  story.actor("A", [&](Actor& me) {
    set_diagnostic_handler({});
    const Party a(me);
    Lender lender = me.must(Lender::at(a.runtime, endpoint), "A has an endpoint");
    Serving serving = me.must(serve(lender), "a thread serves");
    const Lent lent = me.must(lender.offer("m", a.allocate(pattern(size))), "A offers");
    me.pause_until("B", "holds");
  });  // every object ends here, and the process
  story.actor("B", [&](Actor& me) {
    const Party b(me);
    {
      Lease lease = me.must(borrow(b.device, endpoint, "m", 30s), "B borrows");
      me.step("holds");
      me.pause_until_ended("A");
      refused_as(me, lease.checked_bytes(), Errc::exporter_gone, "the checked accessor says so");
    }
    b.leave();
  });
  story.run();
}

TEST_CASE("eight threads that borrow one offer first, at once, share one import, and each reads at once (B076, B093)") {
  constexpr int threads = 8;
  play({}, [](const Party& b, const Endpoint& endpoint) {
    Borrower borrower = b.me.must(Borrower::connect(b.device, endpoint, 30s), "B connects");
    host::delay(acl::Entry::aclrtIpcMemImportByKey, 20);
    host::record_calls(true);
    for (int round = 0; round < 20; ++round) {
      std::barrier start(threads);
      std::barrier read(threads);
      std::vector<std::thread> all;
      for (int i = 0; i < threads; ++i) {
        all.emplace_back([&] {  // a thread that has no device of its own
          start.arrive_and_wait();
          Lease lease = b.me.must(borrower.borrow("m", 30s), "a thread borrows");
          b.me.expect(b.read(lease.bytes()) == pattern(size), "and reads at once");
          read.arrive_and_wait();
          b.me.must(std::move(lease).close(), "and returns");
          std::int32_t device = -1;
          b.me.expect(api().aclrtGetDevice(&device) != 0, "and has no device afterwards either");
        });
      }
      for (std::thread& each : all) each.join();
    }
    b.me.expect_equal(calls_of(acl::Entry::aclrtIpcMemImportByKey), 20U, "one import a round");
    host::record_calls(false);
    host::clear();
  });
}

TEST_CASE("each stage at which borrowing fails, here or in the lender, says which it was, and no two say the same (B083)") {
  struct Stage {
    acl::Entry fails;
    bool at_lender;
  };
  std::set<std::string> texts;
  const Stage stages[] = {{acl::Entry::aclrtIpcMemGetExportKey, true},
                          {acl::Entry::aclrtIpcMemSetImportPid, true},
                          {acl::Entry::aclrtIpcMemImportByKey, false}};
  for (const Stage& stage : stages) {
    CAPTURE(host::entry_name(stage.fails));
    Story story;
    const Endpoint endpoint = Endpoint::path(story.file("lender"));
    story.actor("A", [&](Actor& me) {
      const Party a(me);
      {
        Lender lender = me.must(Lender::at(a.runtime, endpoint), "A has an endpoint");
        Serving serving = me.must(serve(lender), "a thread serves");
        if (stage.at_lender) host::fail(stage.fails, 1, code::rt_drv_internal);
        Lent lent = me.must(lender.offer("m", a.allocate(size)), "A offers");
        me.pause_until("B", "done");
        me.must(me.must(std::move(lent).close(30s), "A closes").close(), "and frees");
      }
      a.leave();
    });
    story.actor("B", [&](Actor& me) {
      const Party b(me);
      if (!stage.at_lender) host::fail(stage.fails, 1, code::rt_drv_internal);
      const auto refused = borrow(b.device, endpoint, "m", 30s);
      me.expect(!refused && refused.error().acl_code() == code::rt_drv_internal, "the code of the runtime comes through");
      me.expect(!refused && refused.error().entry() == stage.fails, "with the call that failed");
      if (!refused) me.give("text", fmt::format("{:l}", refused.error()));
      me.must(me.must(borrow(b.device, endpoint, "m", 30s), "the next time it works").close(), "as ever");
      b.leave();
      me.step("done");
    });
    story.run();
    const std::string text = story.given<std::string>("B", "text");
    CHECK(text.find("507899") != std::string::npos);
    texts.insert(text);
  }
  CHECK(texts.size() == std::size(stages));
}

TEST_CASE("a borrower is admitted once, and once more when it could not import") {
  play(
      {},
      [](const Party& a, Lender&, Lent<DeviceMemory>&) {
        host::record_calls(true);
        a.me.step("records");
        a.me.pause_until("B", "borrowed");
        a.me.expect_equal(calls_of(acl::Entry::aclrtIpcMemSetImportPid), 1U, "B was admitted once");
        a.me.step("counted");
        a.me.pause_until("B", "borrowed again");
        a.me.expect_equal(calls_of(acl::Entry::aclrtIpcMemSetImportPid), 2U, "and once more");
        host::record_calls(false);
      },
      [](const Party& b, const Endpoint& endpoint) {
        const auto borrows = [&](const Borrower& borrower) {
          b.me.must(b.me.must(borrower.borrow("m", 30s), "B borrows").close(), "and returns");
        };
        b.me.pause_until("A", "records");
        const Borrower borrower = b.me.must(Borrower::connect(b.device, endpoint, 30s), "B connects");
        for (int i = 0; i < 3; ++i) borrows(borrower);
        b.me.step("borrowed");
        b.me.pause_until("A", "counted");
        host::fail(acl::Entry::aclrtIpcMemImportByKey, 1, code::rt_drv_internal);
        refused_as(b.me, borrower.borrow("m", 30s), Errc::refused, "B cannot import it");
        for (int i = 0; i < 3; ++i) borrows(borrower);
        b.me.step("borrowed again");
      });
}

TEST_CASE("of offers that are borrowed at once none is held when one cannot be had: not offered, or not imported") {
  play(
      {},
      [](const Party& a, Lender& lender, Lent<DeviceMemory>& m) {
        Lent n = a.me.must(lender.offer("n", a.allocate(pattern(size, 1))), "A offers more");
        Lent o = a.me.must(lender.offer("o", a.allocate(pattern(size, 2))), "and more");
        a.me.step("offered");
        a.me.pause_until("B", "got none");
        for (const auto* const each : {&m, &n, &o}) {
          a.me.expect(soon([&] { return a.me.must(each->holders(), "A looks").empty(); }), "nobody holds it");
        }
        a.me.step("looked");
        a.me.pause_until("B", "has all");
        for (auto* const each : {&n, &o}) {
          a.me.must(a.me.must(std::move(*each).close(30s), "A closes").close(), "and frees");
        }
      },
      [](const Party& b, const Endpoint& endpoint) {
        const std::vector<std::string_view> all{"m", "n", "o"};
        const std::vector<std::string_view> wrong{"m", "n", "no such", "o"};
        b.me.pause_until("A", "offered");
        Borrower borrower = b.me.must(Borrower::connect(b.device, endpoint, 30s), "B connects");
        refused_as(b.me, borrower.borrow_all(wrong, time_to_answer), Errc::no_such_offer, "one is not offered");
        host::fail(acl::Entry::aclrtIpcMemImportByKey, 2, code::rt_drv_internal);
        refused_as(b.me, borrower.borrow_all(all, 10s), Errc::refused, "one cannot be imported");
        host::clear();
        b.me.step("got none");
        b.me.pause_until("A", "looked");
        // With the same connection, which is the lender's still.
        std::vector<Lease> leases = b.me.must(borrower.borrow_all(all, 10s), "then all are there");
        b.me.step("has all");
        for (std::size_t i = 0; i < leases.size(); ++i) {
          b.me.expect(b.read(leases[i].bytes()) == pattern(size, i), "each with its bytes");
        }
      });
}

TEST_CASE("one body lends and borrows by every mechanism, and the borrower says which it was (B087, B111)",
          "[any library]") {
  for (const Mechanism mechanism : all_mechanisms) {
    CAPTURE(name_of(mechanism));
    Story story;
    const Endpoint endpoint = Endpoint::path(story.file("lender"));
    const Switches switches{{"DEVSHARE_HOST_PROFILE", "a3"}};
    story.actor("A", [&](Actor& me) {
      const Party a(me, 0, switches);
      with_mechanism(mechanism, [&](auto kind) {
        auto memory = me.must(allocate_for<decltype(kind)>(a.device, size), "memory for it");
        a.write(memory.bytes(), pattern(size));
        Lender lender = me.must(Lender::at(a.runtime, endpoint), "A has an endpoint");
        Serving serving = me.must(serve(lender), "a thread serves");
        Lent lent = me.must(lender.offer("m", std::move(memory), {.prefer = {mechanism}}), "A offers");
        me.pause_until("B", "done");
        me.must(me.must(std::move(lent).close(30s), "A closes").close(), "and frees");
      });
      a.leave();
    });
    story.actor("B", [&](Actor& me) {
      const Party b(me, 0, switches);
      {
        Lease lease = me.must(borrow(b.device, endpoint, "m", 30s), "B borrows");
        me.expect(lease.mechanism() == mechanism, "and says by what");
        me.expect(b.read(lease.bytes()) == pattern(size), "with the right bytes");
      }
      b.leave();
      me.step("done");
    });
    story.run();
  }
}
