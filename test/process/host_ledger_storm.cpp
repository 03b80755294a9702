// SPDX-License-Identifier: Apache-2.0
// The state of the devices while processes are killed at any moment: never more than there is, right again at once.
#include "host/ledger.hpp"
#include "ledger.hpp"
#include "support/catch.hpp"
#include "support/host_session.hpp"
#include "support/sanitizers.hpp"
#include "support/soak.hpp"
#include "support/story.hpp"

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <random>
#include <thread>
#include <vector>

using namespace devshare;
using namespace devshare::test;
using namespace std::chrono_literals;
namespace code = acl::code;

TEST_CASE("half of 64 processes are killed and the sum is right at once") {
  Story story;
  story.actor("reader", [](Actor& me) {
    std::vector<pid_t> holders;
    auto* const ready = shared<std::atomic<int>>();
    for (int number = 0; number < 64; ++number) {
      holders.push_back(spawn([&] {
        const HostSession session({{"CAPACITY", "1G"}});
        if (!take(unit)) ::_exit(1);
        ready->fetch_add(1);
        for (;;) ::pause();
      }));
    }
    const HostSession session({{"CAPACITY", "1G"}});
    while (ready->load() < 64) std::this_thread::sleep_for(1ms);
    me.expect_equal(in_use(), 64 * unit, "all are seen");
    for (std::size_t number = 0; number < holders.size(); number += 2) {
      ::kill(holders[number], SIGKILL);
      (void)status_of(holders[number]);
    }
    me.expect_equal(in_use(), 32 * unit, "the living are seen, and nobody else");
    for (std::size_t number = 1; number < holders.size(); number += 2) {
      ::kill(holders[number], SIGKILL);
      (void)status_of(holders[number]);
    }
    me.expect_equal(in_use(), std::uint64_t{0}, "nobody is left");
  });
  story.run();
  CHECK(names_in(story.state_directory()).empty());
}

TEST_CASE("a storm of kills: no reader ever sees more than there is, and nothing is left at the end") {
  struct Weather {
    std::atomic<bool> over{false};
    std::atomic<std::uint64_t> taken{0};
    std::atomic<std::uint64_t> most_seen{0};
    std::atomic<std::uint64_t> read{0};
  };
  Story story(120s * times_over());
  story.actor("storm", [](Actor& me) {
    auto* const weather = shared<Weather>();
    const auto worker = [weather](unsigned seed) {
      const HostSession session = open_session();
      std::minstd_rand random(seed);
      std::vector<std::uint64_t> held;
      while (!weather->over.load()) {
        const std::uint64_t bytes = (random() % 12 + 1) * unit;
        if (take(bytes)) {
          held.push_back(bytes);
          weather->taken.fetch_add(1);
        }
        if (held.size() > random() % 4) {
          host::ledger_release(0, held.back());
          held.pop_back();
        }
        if (random() % 16 == 0 && host::ledger_claim(0, unit) == 0) host::ledger_take_back(0, unit);
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
    std::vector<pid_t> workers(6);
    for (pid_t& pid : workers) pid = spawn([&] { worker(static_cast<unsigned>(random())); });
    const int kills = (under_sanitizer() ? 40 : 100) * times_over();
    for (int kill = 0; kill < kills; ++kill) {
      std::this_thread::sleep_for(std::chrono::microseconds(random() % 4000));
      pid_t& victim = workers[random() % workers.size()];
      ::kill(victim, SIGKILL);
      me.expect(WIFSIGNALED(status_of(victim)), "a worker runs until it is killed");
      const auto seed = static_cast<unsigned>(random());
      victim = spawn([&] { worker(seed); });
    }
    weather->over.store(true);
    for (const pid_t pid : workers) me.expect_equal(status_of(pid), 0, "the last workers end by themselves");
    me.expect_equal(status_of(reader), 0, "the reader ends by itself");
    me.expect(weather->read.load() > 100, "there was reading");
    me.expect(weather->taken.load() > 1000, "there was taking");
    me.expect(weather->most_seen.load() <= 40 * unit,
              fmt::format("never more than capacity: {}", weather->most_seen.load()));
    me.expect(weather->most_seen.load() > 0, "but something");
    const HostSession session = open_session();
    me.expect_equal(in_use(), std::uint64_t{0}, "nothing is left");
    me.expect(take(40 * unit), "everything is to be had");
  });
  story.run();
}

TEST_CASE("the same storm through aclrtMalloc and aclrtFree leaves the device empty") {
  Story story(120s * times_over());
  story.actor("storm", [](Actor& me) {
    auto* const over = shared<std::atomic<bool>>();
    const auto worker = [over] {
      const HostSession session = open_session();
      if (session->aclrtSetDevice(0) != 0) ::_exit(1);
      while (!over->load()) {
        void* memory = nullptr;
        const acl::aclError result = session->aclrtMalloc(&memory, 10 * unit, acl::malloc_policy::huge_first);
        if (result != 0 && result != code::rt_memory_allocation) ::_exit(2);
        if (result == 0 && session->aclrtFree(memory) != 0) ::_exit(3);
      }
    };
    std::vector<pid_t> workers(6);
    for (pid_t& pid : workers) pid = spawn(worker);
    const int kills = 30 * times_over();
    for (int kill = 0; kill < kills; ++kill) {
      std::this_thread::sleep_for(2ms);
      pid_t& victim = workers[static_cast<std::size_t>(kill) % workers.size()];
      ::kill(victim, SIGKILL);
      me.expect(WIFSIGNALED(status_of(victim)), "a worker runs until it is killed");
      victim = spawn(worker);
    }
    over->store(true);
    for (const pid_t pid : workers) me.expect_equal(status_of(pid), 0, "the last workers end by themselves");
    const HostSession session = open_session();
    me.expect_equal(in_use(), std::uint64_t{0}, "nothing is left");
  });
  story.run();
  CHECK(names_in(story.state_directory()).empty());
}
