// SPDX-License-Identifier: Apache-2.0
// Memory that several processes hold counts once, for as long as one of them lives, however the others ended.
#include "support/catch.hpp"
#include "support/child.hpp"
#include "support/host_session.hpp"
#include "support/sanitizers.hpp"
#include "support/soon.hpp"
#include "support/story.hpp"

#include "host/ledger.hpp"
#include "host/state_layout.hpp"

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <new>
#include <string>
#include <thread>
#include <vector>

using namespace devshare;
using namespace devshare::test;
using host::Reason;
namespace code = acl::code;
using namespace std::chrono_literals;

namespace {

constexpr std::uint64_t unit = 1 << 20;
constexpr std::uint64_t block = 4711;  // as the inode of a memfd

// A session whose devices hold 40 units each.
HostSession open_session() { return HostSession({{"CAPACITY", "40M"}}); }

// What making memory does to the ledger, and what freeing it does.
bool take(std::uint64_t bytes) {
  if (host::ledger_claim(0, bytes) != 0) return false;
  host::ledger_commit(0, bytes);
  return true;
}

std::uint64_t in_use(std::int32_t device = 0) { return host::bytes_in_use(device); }

bool share(std::uint64_t id = block, std::uint64_t bytes = 10 * unit) {
  return take(bytes) && host::ledger_share(0, id, bytes) == 0;
}

}  // namespace

TEST_CASE("what a process shares counts once, whoever joins, until the last one lets go") {
  Story story;
  story.actor("A", [](Actor& me) {
    const HostSession session = open_session();
    me.expect(share(), "A shares 10");
    me.expect_equal(in_use(), 10 * unit, "which counts as before");
    me.step("shared");
    me.pause_until("B", "holds");
    me.expect_equal(in_use(), 10 * unit, "once");
    me.expect(take(30 * unit), "the rest is free");
    me.expect(!take(1), "to the last byte");
    host::ledger_release(0, 30 * unit);
    me.expect(host::ledger_let_go(block), "A lets go");
    me.expect(!host::ledger_let_go(block), "and has nothing to let go of then");
    me.expect_equal(in_use(), 10 * unit, "B has it still");
    me.step("let go");
    me.pause_until("B", "done");
    me.expect_equal(in_use(), std::uint64_t{0}, "nothing is left");
    me.expect(take(40 * unit), "everything is to be had");
  });
  story.actor("B", [](Actor& me) {
    const HostSession session = open_session();
    me.pause_until("A", "shared");
    me.expect_equal(host::ledger_hold(0, block, 10 * unit), 0, "B holds it too");
    me.expect_equal(in_use(1), std::uint64_t{0}, "nothing of it on the other device");
    me.step("holds");
    me.pause_until("A", "let go");
    me.expect(!take(31 * unit), "it still counts");
    me.expect(HostSession::reason() == Reason::capacity, "for want of room");
    me.expect(host::ledger_let_go(block), "B lets go");
    me.step("done");
  });
  story.run();
}

TEST_CASE("memory that is becoming shared is never overlooked by who looks for room") {
  // Odd while there is no room.
  void* const memory = ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  REQUIRE(memory != MAP_FAILED);
  auto& turn = *::new (memory) std::atomic<std::uint64_t>(0);
  constexpr std::uint64_t rounds = under_sanitizer() ? 500 : 2'000;
  Story story;
  story.actor("A", [&](Actor& me) {
    // A's slot is behind those of many others, so that adding them all up takes a while in which A shares.
    std::vector<pid_t> others(300);
    for (pid_t& other : others) {
      other = ::fork();
      if (other < 0) std::abort();  // -1 would be everybody to kill
      if (other != 0) continue;
      const HostSession session = open_session();
      if (!take(1)) ::_exit(1);
      turn.fetch_add(1);
      for (;;) ::pause();
    }
    me.expect(soon([&] { return turn == others.size(); }), "they have joined");
    const HostSession session = open_session();
    me.expect(take(1), "A too");
    for (const pid_t other : others) {
      ::kill(other, SIGKILL);
      ::waitpid(other, nullptr, 0);
    }
    me.step("joined");
    me.pause_until("B", "looks");
    for (std::uint64_t round = 1; round <= rounds; ++round) {
      while (!take(21 * unit)) {  // B has it at this moment
      }
      turn.fetch_add(1);
      if (host::ledger_share(0, round, 21 * unit) != 0) me.fail("it is shared");
      std::this_thread::sleep_for(50us);  // for B to finish what it began in the meantime
      turn.fetch_add(1);
      host::ledger_let_go(round);
    }
    turn.store(UINT64_MAX - 1);
  });
  story.actor("B", [&](Actor& me) {
    me.pause_until("A", "joined");
    const HostSession session = open_session();
    me.step("looks");
    std::uint64_t overlooked = 0;
    std::uint64_t found = 0;
    for (std::uint64_t before = turn; before != UINT64_MAX - 1; before = turn) {
      if (!take(20 * unit)) {
        std::this_thread::sleep_for(10us);  // or the lock of the file would make them take turns
        continue;
      }
      ++found;
      if (before % 2 != 0 && turn == before) ++overlooked;
      host::ledger_release(0, 20 * unit);
    }
    me.expect(found > 0, "there was room at times");
    me.expect_equal(overlooked, std::uint64_t{0}, "and none when A had it");
  });
  story.run();
  ::munmap(memory, 4096);
}

TEST_CASE("of those who hold a block together any may be killed, and the sum is right at once") {
  for (const std::string victim : {"A", "B"}) {
    CAPTURE(victim);
    const std::string heir = victim == "A" ? "B" : "A";
    Story story;
    story.kill(victim, at("watcher", "seen"));
    story.actor("A", [heir](Actor& me) {
      const HostSession session = open_session();
      me.expect(share(), "A shares 10");
      me.expect(take(3 * unit), "and has 3 of its own");
      me.step("shared");
      me.pause_until("watcher", heir == "A" ? "killed" : "never");
      me.expect(host::ledger_let_go(block), "A lets go");
      host::ledger_release(0, 3 * unit);
      me.step("free");
    });
    story.actor("B", [heir](Actor& me) {
      const HostSession session = open_session();
      me.pause_until("A", "shared");
      me.expect_equal(host::ledger_hold(0, block, 10 * unit), 0, "B holds it too");
      me.step("holds");
      me.pause_until("watcher", heir == "B" ? "killed" : "never");
      me.expect(host::ledger_let_go(block), "B lets go");
      me.step("free");
    });
    story.actor("watcher", [victim, heir](Actor& me) {
      const HostSession session = open_session();
      me.pause_until("B", "holds");
      me.expect_equal(in_use(), 13 * unit, "13 in all");
      me.step("seen");
      me.pause_until_ended(victim);
      me.expect_equal(in_use(), (victim == "A" ? 10 : 13) * unit,
                      "the shared 10 stay, what was A's alone goes with it");
      me.expect(take(27 * unit), "and what is free is to be had");
      host::ledger_release(0, 27 * unit);
      me.step("killed");
      me.pause_until(heir, "free");
      me.expect_equal(in_use(), std::uint64_t{0}, "nothing is left");
    });
    story.run();
  }
}

TEST_CASE("what everybody was killed with is free at once, without anybody asking first") {
  Story story;
  story.kill("A", at("shared"));
  story.actor("A", [](Actor& me) {
    const HostSession session = open_session();
    me.expect(share(block, 40 * unit), "A shares all there is");
    me.step("shared");
  });
  story.actor("B", [](Actor& me) {
    const HostSession session = open_session();
    me.pause_until_ended("A");
    me.expect(take(40 * unit), "B takes it all");
    me.expect_equal(host::ledger_hold(0, block, 1), code::rt_memory_allocation, "and then there is no room for A's");
    me.expect(HostSession::reason() == Reason::capacity, "for want of room");
    host::ledger_release(0, 40 * unit);
    me.expect_equal(host::ledger_hold(0, block, 40 * unit), 0, "now there is");
    me.expect_equal(in_use(), 40 * unit, "and it counts");
  });
  story.run();
}

TEST_CASE("a process that holds a block several times lets go as often, and it counts once") {
  const ChildEnd end = in_child([] {
    const HostSession session = open_session();
    demand(share(), "it shares 10");
    demand(host::ledger_hold(0, block, 10 * unit) == 0, "and holds it");
    demand(in_use() == 10 * unit, "10 in all");
    demand(host::ledger_let_go(block), "once");
    demand(in_use() == 10 * unit, "still 10");
    demand(host::ledger_let_go(block), "twice");
    demand(in_use() == 0, "none");
    demand(!host::ledger_let_go(block), "not three times");
  });
  INFO(end.in_words());
  CHECK(end.good());
}

TEST_CASE("without a machine a process counts what it shares by itself") {
  const ChildEnd end = in_child([] {
    const HostSession session({{"CAPACITY", "40M"}, {"STATE", "none"}});
    demand(share(), "it shares 10");
    demand(host::ledger_hold(0, 1, 20 * unit) == 0, "and joins in 20");
    demand(in_use() == 30 * unit, "30 in all");
    demand(host::ledger_hold(0, 2, 11 * unit) == code::rt_memory_allocation, "11 more do not fit");
    demand(!take(11 * unit), "neither way");
    demand(take(10 * unit), "10 do");
    demand(host::ledger_let_go(1) && host::ledger_let_go(block), "both go");
    demand(in_use() == 10 * unit, "the rest stays");
  });
  INFO(end.in_words());
  CHECK(end.good());
}

TEST_CASE("a process that lost its slot has what it shares in the new one") {
  const ChildEnd end = in_child([] {
    const HostSession session = open_session();
    demand(share(), "it shares 10");
    for (int descriptor = 3; descriptor < 64; ++descriptor) ::close(descriptor);  // as a daemon does at its start
    demand(in_use() == 10 * unit, "they count");
    const ChildEnd other = in_child([] {
      const HostSession own = open_session();
      demand(in_use() == 10 * unit, "for others too");
      demand(host::ledger_hold(0, block, 10 * unit) == 0, "who may join");
      demand(in_use() == 10 * unit, "and count once");
    });
    demand(other.good(), other.in_words().c_str());
    demand(host::ledger_let_go(block), "it lets go");
    demand(in_use() == 0, "nothing is left");
  });
  INFO(end.in_words());
  CHECK(end.good());
}

TEST_CASE("servers are different machines, each with devices of its own") {
  Story story;
  story.actor("A", [](Actor& me) {
    const HostSession session = open_session();
    me.expect(share(), "A shares 10");
    me.step("shared");
    me.pause_until("B", "looked");
  });
  story.actor("B", [](Actor& me) {
    me.pause_until("A", "shared");
    const HostSession session({{"CAPACITY", "40M"}, {"SERVER", "1"}});
    me.expect_equal(in_use(), std::uint64_t{0}, "nothing is in use on the other server");
    me.step("looked");
  });
  story.run();
}

TEST_CASE("the table of shared memory has 65,536 entries, says when it is full, and has room again at once") {
  const ChildEnd end = in_child([] {
    const HostSession session({{"CAPACITY", "1G"}});
    for (std::uint64_t id = 1; id <= host::shared_claim_count; ++id) {
      if (!share(id, 1)) demand(false, "there is room for all");
    }
    demand(in_use() == host::shared_claim_count, "all of them count");
    demand(take(1), "one more byte");
    demand(host::ledger_share(0, block + host::shared_claim_count, 1) == code::rt_resource_alloc_fail, "has no entry");
    demand(host::last_cause().reason == Reason::key_limit, "for want of entries");
    demand(host::last_cause().available == host::shared_claim_count, "and the refusal says how many there are");
    demand(in_use() == host::shared_claim_count + 1, "it counts as before");
    demand(host::ledger_let_go(7), "one goes");
    demand(host::ledger_share(0, block + host::shared_claim_count, 1) == 0, "and there is room for one");
    demand(in_use() == host::shared_claim_count, "the sum is exact");
  });
  INFO(end.in_words());
  CHECK(end.good());
}

TEST_CASE("ten thousand shares that come and go leave the table short and the sum exact") {
  const ChildEnd end = in_child([] {
    const HostSession session = open_session();
    demand(share(1), "one stays");
    for (std::uint64_t round = 0; round < 10'000; ++round) {
      if (!share(2 + round, unit) || !host::ledger_let_go(2 + round)) demand(false, "each of them comes and goes");
    }
    demand(in_use() == 10 * unit, "one is left");
  });
  INFO(end.in_words());
  CHECK(end.good());
}
