// SPDX-License-Identifier: Apache-2.0
// Memory that several processes hold, while they are killed: between any two instructions of sharing, joining and
// letting go, and in a storm of all three. What is left is what the living hold, every block once.
#include "host/ledger.hpp"
#include "ledger.hpp"
#include "support/catch.hpp"
#include "support/child.hpp"
#include "support/host_session.hpp"
#include "support/sanitizers.hpp"
#include "support/soak.hpp"
#include "support/story.hpp"

#include <fmt/format.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <functional>
#include <random>
#include <string>
#include <thread>
#include <vector>

using namespace devshare;
using namespace devshare::test;
using namespace std::chrono_literals;
namespace code = acl::code;

namespace {

constexpr std::uint64_t block = 4711;  // as the inode of a memfd

// What a process does that is killed in the middle of it, and what else there is.
struct Act {
  bool held_by_us = false;            // the block is held by the test's process too
  int stride = 61;                    // instructions from one kill to the next; in the suite `soak` none is left out
  std::function<bool()> before;       // done already
  std::function<bool()> interrupted;  // killed somewhere in this
};

// A child that has done what comes before the act, and is stopped.
pid_t stopped_before(const Act& act) {
  const pid_t child = spawn([&] {
    const HostSession session = open_session();
    if (!act.before()) ::_exit(1);
    ::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr);
    ::raise(SIGSTOP);
    if (!act.interrupted()) ::_exit(2);
    ::raise(SIGSTOP);
    ::_exit(0);
  });
  int status = 0;
  demand(::waitpid(child, &status, 0) == child && WIFSTOPPED(status), "it stops before the act");
  return child;
}

// One instruction more. False when it is through the act.
bool step(pid_t child) {
  int status = 0;
  demand(::ptrace(PTRACE_SINGLESTEP, child, nullptr, nullptr) == 0, "it goes on by one instruction");
  demand(::waitpid(child, &status, 0) == child && WIFSTOPPED(status), "and stops again");
  return WSTOPSIG(status) != SIGSTOP;
}

void kill(pid_t child) {
  int status = 0;
  ::kill(child, SIGKILL);
  demand(::waitpid(child, &status, 0) == child && WIFSIGNALED(status), "it is killed");
}

// Runs `act` in a child for so many instructions and kills it there. False when it was through before.
bool run_and_kill(const Act& act, int instructions) {
  const pid_t child = stopped_before(act);
  bool in_it = true;
  for (int done = 0; done < instructions && in_it; ++done) in_it = step(child);
  kill(child);
  return in_it;
}

// Kills it after every so many instructions, each time anew, until the act is through.
void kill_everywhere(const Act& act) {
  if (under_sanitizer()) DEVSHARE_SKIP("a sanitizer's instructions would be counted");
  const ChildEnd end = in_child(
      [&] {
        const HostSession session = open_session();
        const std::uint64_t ours = act.held_by_us ? 10 * unit : 0;
        if (act.held_by_us) demand(take(ours) && host::ledger_share(0, block, ours) == 0, "we share 10");
        const int stride = times_over() > 1 ? 1 : act.stride;
        int kills = 0;
        for (int instructions = 1; run_and_kill(act, instructions); instructions += stride) {
          ++kills;
          if (kills % 2 == 0) demand(in_use() == ours, "what is left is ours");
          demand(!take(40 * unit - ours + 1), "more than the rest is not to be had");
          demand(take(40 * unit - ours), "all the rest is");
          host::ledger_release(0, 40 * unit - ours);
          demand(in_use() == ours, "and we have what we had");
        }
        demand(kills > 10, "it was killed in the middle");
      },
      {.limit = 600s * times_over(), .set = {}});
  INFO(end.in_words());
  CHECK(end.good());
}

bool share_10() { return take(10 * unit) && host::ledger_share(0, block, 10 * unit) == 0; }
bool hold_10() { return host::ledger_hold(0, block, 10 * unit) == 0; }
bool join_only() {  // the machine, so that what is interrupted is the act alone
  if (!take(unit)) return false;
  host::ledger_release(0, unit);
  return true;
}

}  // namespace

TEST_CASE("a process that is killed anywhere in sharing its memory leaves nothing") {
  kill_everywhere(
      {false, 61, [] { return take(10 * unit); }, [] { return host::ledger_share(0, block, 10 * unit) == 0; }});
}

TEST_CASE("a process that is stopped anywhere in sharing its memory never shows more than it has") {
  if (under_sanitizer()) DEVSHARE_SKIP("a sanitizer's instructions would be counted");
  const ChildEnd end = in_child(
      [] {
        const HostSession session = open_session();
        const Act share{false, 0, [] { return take(10 * unit); },
                        [] { return host::ledger_share(0, block, 10 * unit) == 0; }};
        const pid_t child = stopped_before(share);
        int looks = 0;
        int amid = 0;
        for (int done = 1; step(child); ++done) {
          if (done % 5 != 0) continue;
          const std::uint64_t seen = in_use();
          demand(seen <= 10 * unit, "never more than there is");
          ++looks;
          if (seen != 10 * unit) ++amid;
        }
        demand(in_use() == 10 * unit, "and it is there when it is shared");
        demand(looks > 50 && amid < looks / 2, "there was something to see, and mostly it was all of it");
        kill(child);
        demand(in_use() == 0, "nothing is left");
      },
      {.limit = 600s * times_over(), .set = {}});
  INFO(end.in_words());
  CHECK(end.good());
}

TEST_CASE("a process that is killed anywhere in joining what we hold leaves it as it is") {
  kill_everywhere({true, 61, join_only, hold_10});
}

TEST_CASE("a process that is killed anywhere in joining what nobody holds any more leaves nothing") {
  kill_everywhere({false, 61, join_only, hold_10});
}

TEST_CASE("a process that is killed anywhere in meeting the others leaves what they hold") {
  kill_everywhere({true, 499, [] { return true; }, join_only});
}

TEST_CASE("a process that is killed anywhere in letting go leaves what we hold") {
  kill_everywhere({true, 17, hold_10, [] { return host::ledger_let_go(block); }});
}

TEST_CASE("a process that is killed anywhere in letting go of what it shared alone leaves nothing") {
  kill_everywhere({false, 17, share_10, [] { return host::ledger_let_go(block); }});
}

TEST_CASE("a storm of kills over shared memory: no reader ever sees more than there is, nothing is left at the end") {
  constexpr std::size_t blocks = 24;
  struct Weather {
    std::atomic<bool> over{false};
    std::atomic<std::uint64_t> shared{0};
    std::atomic<std::uint64_t> joined{0};
    std::atomic<std::uint64_t> most_seen{0};
    std::atomic<std::uint64_t> read{0};
  };
  Story story(120s * times_over());
  story.actor("storm", [](Actor& me) {
    auto* const weather = shared<Weather>();
    const auto bytes_of = [](std::uint64_t number) { return (number % 12 + 1) * unit; };
    const auto worker = [=](unsigned seed) {
      const HostSession session = open_session();
      std::minstd_rand random(seed);
      std::vector<std::uint64_t> held;
      while (!weather->over.load()) {
        const std::uint64_t number = 1 + random() % blocks;
        switch (random() % 4) {
          case 0:
            if (!take(bytes_of(number))) break;
            // A number of its own, as every memfd has: others may join it only once it is shared.
            if (host::ledger_share(0, std::uint64_t{seed} << 32 | random(), bytes_of(number)) == 0) {
              weather->shared.fetch_add(1);
              held.push_back(0);  // it ends with the process
            }
            break;
          case 1:
            if (host::ledger_hold(0, number, bytes_of(number)) != 0) break;
            held.push_back(number);
            weather->joined.fetch_add(1);
            break;
          case 2:
            if (take(bytes_of(number))) host::ledger_release(0, bytes_of(number));
            break;
          default:
            if (held.empty()) break;
            if (held.back() != 0) host::ledger_let_go(held.back());
            held.pop_back();
        }
        if (held.size() > 6) ::_exit(0);  // with all it holds
      }
    };
    const pid_t reader = spawn([weather] {
      const HostSession session = open_session();
      while (!weather->over.load()) {
        const std::uint64_t seen = in_use();
        if (seen > weather->most_seen.load()) weather->most_seen.store(seen);
        weather->read.fetch_add(1);
      }
    });
    std::minstd_rand random(4711);
    std::vector<pid_t> workers(5);
    const auto start = [&] {
      const auto seed = static_cast<unsigned>(random());
      return spawn([&] { worker(seed); });
    };
    for (pid_t& pid : workers) pid = start();
    const int kills = (under_sanitizer() ? 40 : 150) * times_over();
    // Until there was enough of everything too: where a process takes long to begin, it is killed before it has done
    // much.
    const auto enough = [&] { return weather->shared.load() > 100 && weather->joined.load() > 100; };
    for (int kill = 0; kill < kills || !enough(); ++kill) {
      std::this_thread::sleep_for(std::chrono::microseconds(random() % (under_sanitizer() ? 40'000 : 4'000)));
      pid_t& victim = workers[random() % workers.size()];
      ::kill(victim, SIGKILL);
      const int status = status_of(victim);
      me.expect(WIFSIGNALED(status) || status == 0, "a worker ends full, or is killed");
      victim = start();
    }
    weather->over.store(true);
    for (const pid_t pid : workers) me.expect_equal(status_of(pid), 0, "the last workers end by themselves");
    me.expect_equal(status_of(reader), 0, "the reader ends by itself");
    me.expect(weather->read.load() > 100, "there was reading");
    me.expect(weather->most_seen.load() <= 40 * unit,
              fmt::format("never more than capacity: {}", weather->most_seen.load()));
    me.expect(weather->most_seen.load() > 0, "but something");
    const HostSession session = open_session();
    me.expect_equal(in_use(), std::uint64_t{0}, "nothing is left");
    me.expect(take(40 * unit), "everything is to be had");
  });
  story.run();
}

TEST_CASE("of two who join at once what nobody holds one may fail, but never both hold more than there is") {
  Story story;
  story.actor("A", [](Actor& me) {
    struct Turn {
      std::atomic<int> ready{0};
      std::atomic<int> won{0};
      std::atomic<int> round{0};
    };
    auto* const turn = shared<Turn>();
    constexpr int rounds = 300;
    const auto contender = [turn](std::uint64_t own) {
      const HostSession session = open_session();
      for (int round = 1; round <= rounds; ++round) {
        turn->ready.fetch_add(1);
        while (turn->round.load() < round) std::this_thread::yield();
        const bool won = host::ledger_hold(0, own, 30 * unit) == 0;
        if (won) turn->won.fetch_add(1);
        turn->ready.fetch_add(1);
        while (turn->round.load() < round + rounds) std::this_thread::yield();
        if (won) host::ledger_let_go(own);
        turn->ready.fetch_add(1);
        while (turn->round.load() != round) std::this_thread::yield();
      }
    };
    const std::array<pid_t, 2> both{spawn([&] { contender(1); }), spawn([&] { contender(2); })};
    const HostSession session = open_session();
    const auto all_are_ready = [&](int times) {
      while (turn->ready.load() < times) std::this_thread::yield();
    };
    int times = 0;
    for (int round = 1; round <= rounds; ++round) {
      all_are_ready(times += 2);
      turn->won.store(0);
      turn->round.store(round);
      all_are_ready(times += 2);
      me.expect_equal(turn->won.load(), 1, "one of the two has it");
      me.expect_equal(in_use(), 30 * unit, "and it counts");
      turn->round.store(round + rounds);
      all_are_ready(times += 2);
      turn->round.store(round);
    }
    for (const pid_t pid : both) me.expect_equal(status_of(pid), 0, "both end by themselves");
    me.expect_equal(in_use(), std::uint64_t{0}, "nothing is left");
  });
  story.run();
}
