// SPDX-License-Identifier: Apache-2.0
// The state of the devices over many processes: exact at every moment, and limits that hold over all of them.
#include "host/ledger.hpp"
#include "ledger.hpp"
#include "support/catch.hpp"
#include "support/child.hpp"
#include "support/descriptors.hpp"
#include "support/host_session.hpp"
#include "support/isolation.hpp"
#include "support/story.hpp"

#include <fmt/format.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

using namespace devshare;
using namespace devshare::test;
using host::Reason;
using namespace std::chrono_literals;
namespace code = acl::code;

TEST_CASE("what one process uses, every process sees, and a killed one's bytes are free at once") {
  Story story;
  story.actor("A", [](Actor& me) {
    const HostSession session = open_session();
    me.expect(host::device_state_scope() == "machine", host::device_state_note());
    me.expect(take(10 * unit), "A takes 10");
    me.step("took");
    me.pause_until("B", "took");
    me.expect_equal(in_use(), 25 * unit, "A sees both");
    me.expect_equal(in_use(1), std::uint64_t{0}, "and nothing on the other device");
    me.step("seen");
    me.pause_until("B", "done");
  });
  story.actor("B", [](Actor& me) {
    const HostSession session = open_session();
    me.pause_until("A", "took");
    me.expect(!take(31 * unit), "31 more do not fit");
    me.expect(HostSession::reason() == Reason::capacity, "for want of room");
    me.expect_equal(host::last_cause().available, 30 * unit, "and the refusal says how much there is");
    me.expect(take(15 * unit), "15 do");
    me.step("took");
    me.pause_until_ended("A");
    me.expect_equal(in_use(), 15 * unit, "A's bytes went with it");
    me.expect(take(25 * unit), "and are to be had");
    me.expect(!take(1), "to the last byte");
    host::ledger_release(0, 40 * unit);
    me.expect_equal(in_use(), std::uint64_t{0}, "nothing is left");
  });
  story.kill("A", at("seen"));
  story.run();
  CHECK(names_in(story.state_directory()).empty());
}

TEST_CASE("a claim counts for those who want room and not for those who ask what is used") {
  Story story;
  story.actor("A", [](Actor& me) {
    const HostSession session = open_session();
    me.expect(host::ledger_claim(0, 30 * unit) == 0, "A claims 30");
    me.expect_equal(in_use(), std::uint64_t{0}, "which are not used yet");
    const pid_t other = spawn([] {
      const HostSession own = open_session();
      demand(in_use() == 0, "not for others either");
      demand(!take(11 * unit), "but they are spoken for");
      demand(take(10 * unit), "and the rest is free");
    });
    me.expect_equal(status_of(other), 0, "the other is content");
    host::ledger_commit(0, 30 * unit);
    me.expect_equal(in_use(), 30 * unit, "committed, they are used");
    me.expect(host::ledger_claim(0, 10 * unit) == 0, "A claims the rest");
    host::ledger_take_back(0, 10 * unit);
    me.expect_equal(in_use(), 30 * unit, "and takes it back");
  });
  story.run();
}

TEST_CASE("a claim that is taken back refuses nobody") {
  Story story;
  story.actor("taker", [](Actor& me) {
    auto* const over = shared<std::atomic<bool>>();
    auto* const began = shared<std::atomic<int>>();
    const auto hesitate = [=] {
      const HostSession session = open_session();
      while (!over->load()) {
        if (host::ledger_claim(0, 30 * unit) == 0) {
          began->fetch_add(1);
          spin(20us);
          host::ledger_take_back(0, 30 * unit);
        }
        spin(20us);
      }
    };
    const pid_t other = spawn(hesitate);
    const HostSession session = open_session();
    while (began->load() == 0) std::this_thread::sleep_for(1ms);
    int refused = 0;
    constexpr int tries = 1000;
    for (int attempt = 0; attempt < tries; ++attempt) {
      if (take(20 * unit)) {
        host::ledger_release(0, 20 * unit);
      } else {
        ++refused;
      }
      std::this_thread::sleep_for(100us);  // so that the other gets on, also on one processor
    }
    over->store(true);
    me.expect_equal(status_of(other), 0, "the other ends by itself");
    // Not never: where the other loses its processor between claim and taking back, it really has the room.
    me.expect(refused * 8 < tries, fmt::format("hardly ever refused: {} of {}", refused, tries));
  });
  story.run();
}

TEST_CASE("a process that is gone is gone, though its forked child lives on") {
  Story story;
  story.actor("owner", [](Actor& me) {
    const HostSession session = open_session();
    me.expect(take(10 * unit), "the owner takes 10");
    const pid_t child = spawn([] { std::this_thread::sleep_for(20s); });
    me.send("watcher", child);
    me.pause_until("watcher", "saw it");
    ::_exit(0);
  });
  story.ends("owner", with_code(0));
  story.actor("watcher", [](Actor& me) {
    const HostSession session = open_session();
    const auto child = me.receive<pid_t>("owner");
    me.expect_equal(in_use(), 10 * unit, "the owner's bytes are seen");
    me.step("saw it");
    me.pause_until_ended("owner");
    me.expect(::kill(child, 0) == 0, "the child lives");
    me.expect_equal(in_use(), std::uint64_t{0}, "and holds nothing");
    ::kill(child, SIGKILL);
  });
  story.run();
}

TEST_CASE("a forked child has a ledger of its own, and its parent keeps its slot") {
  const ChildEnd end = in_child([] {
    const HostSession session = open_session();
    demand(take(10 * unit), "the parent takes 10");
    const pid_t child = spawn([] {
      const HostSession own = open_session();
      demand(in_use() == 10 * unit, "the child sees the parent's bytes");
      demand(take(5 * unit), "and takes its own");
      demand(in_use() == 15 * unit, "on top");
    });
    demand(status_of(child) == 0, "the child is content");
    demand(in_use() == 10 * unit, "the child's bytes went with it, the parent's did not");
    demand(!take(31 * unit), "the parent's slot still counts");
  });
  INFO(end.in_words());
  CHECK(end.good());
}

TEST_CASE("a process in its own pid and user namespace counts like any other") {
  const Isolation isolation = Isolation::user | Isolation::pid;
  if (const std::string why = why_no(isolation); !why.empty()) DEVSHARE_SKIP(why);
  Story story;
  story.actor("inside", Role{.isolation = isolation}, [](Actor& me) {
    const HostSession session = open_session();
    me.expect(host::device_state_scope() == "machine", host::device_state_note());
    me.expect(take(10 * unit), "it takes 10");
    me.step("took");
    me.pause_until("outside", "never");
  });
  story.actor("outside", [](Actor& me) {
    const HostSession session = open_session();
    me.pause_until("inside", "took");
    me.expect_equal(in_use(), 10 * unit, "they are seen from outside");
    me.step("seen");
    me.pause_until_ended("inside");
    me.expect_equal(in_use(), std::uint64_t{0}, "and are gone when it is killed");
  });
  story.kill("inside", at("outside", "seen"));
  story.run();
}

TEST_CASE("at most 32 processes hold one direction on, and a dead one makes room") {
  Story story;
  story.actor("last", [](Actor& me) {
    auto* const ready = shared<std::atomic<int>>();
    std::vector<pid_t> holders;
    for (int number = 0; number < 32; ++number) {
      holders.push_back(spawn([&] {
        const HostSession session;
        if (session->aclrtSetDevice(0) != 0 || session->aclrtDeviceEnablePeerAccess(1, 0) != 0) ::_exit(1);
        ready->fetch_add(1);
        for (;;) ::pause();
      }));
    }
    const HostSession session;
    while (ready->load() < 32) std::this_thread::sleep_for(1ms);
    me.expect(session->aclrtSetDevice(0) == 0, "a device");
    me.expect_equal(session->aclrtDeviceEnablePeerAccess(1, 0), code::rt_memory_allocation, "the 33rd is refused");
    me.expect(HostSession::reason() == Reason::peer_access_limit, "by the limit");
    me.expect(host::ledger_direction_on(0, 1), "though the direction is on, by the others");
    ::kill(holders.back(), SIGKILL);
    (void)status_of(holders.back());
    me.expect_equal(session->aclrtDeviceEnablePeerAccess(1, 0), 0, "one less, and there is room");
    me.expect_equal(session->aclrtDeviceDisablePeerAccess(1), 0, "given back");
    holders.pop_back();
    for (const pid_t holder : holders) {
      ::kill(holder, SIGKILL);
      (void)status_of(holder);
    }
    me.expect(!host::ledger_direction_on(0, 1), "grants go with their processes");
  });
  story.run();
}

TEST_CASE("two processes may each bring one direction") {
  Story story;
  story.actor("A", [](Actor& me) {
    const HostSession session;
    me.expect(session->aclrtSetDevice(0) == 0 && session->aclrtDeviceEnablePeerAccess(1, 0) == 0, "A enables 0 to 1");
    me.step("enabled");
    me.pause_until("B", "enabled");
    std::int32_t on = 0;
    me.expect(session->aclrtDevicePeerAccessStatus(0, 1, &on) == 0 && on == 1, "both are on");
    me.step("seen");
    me.pause_until_ended("B");
    me.expect(session->aclrtDevicePeerAccessStatus(0, 1, &on) == 0 && on == 0, "B took its own with it");
  });
  story.actor("B", [](Actor& me) {
    const HostSession session;
    me.pause_until("A", "enabled");
    me.expect(session->aclrtSetDevice(1) == 0 && session->aclrtDeviceEnablePeerAccess(0, 0) == 0, "B enables 1 to 0");
    me.step("enabled");
    me.pause_until("A", "seen");
    me.step("leaving");
  });
  story.kill("B", at("leaving"));
  story.run();
}

TEST_CASE("the ledger costs two descriptors, and a claim that fits costs no system call") {
  const ChildEnd end = in_child([] {
    const std::size_t before = count_descriptors();
    const HostSession session = open_session();
    demand(take(unit), "it joins");
    demand(count_descriptors() == before + 2, "a directory and a file");
    if (!why_no_refused_system_calls().empty()) return;
    for (const long number : {SYS_fcntl, SYS_newfstatat, SYS_fstat, SYS_openat}) refuse_system_call(number, EPERM);
    for (int times = 0; times < 100; ++times) {
      demand(take(unit), "with no system call to be had, it still is");
      host::ledger_release(0, unit);
    }
    ::_exit(0);
  });
  INFO(end.in_words());
  CHECK(end.good());
}

TEST_CASE("threads of one process share its slot") {
  const ChildEnd end = in_child([] {
    const HostSession session = open_session();
    std::atomic<bool> over{false};
    std::atomic<bool> too_much{false};
    std::thread reader([&] {
      while (!over.load()) too_much = too_much || in_use() > 40 * unit;
    });
    std::vector<std::thread> threads;
    for (int number = 0; number < 3; ++number) {
      threads.emplace_back([] {
        for (int round = 0; round < 3000; ++round) {
          if (take(15 * unit)) host::ledger_release(0, 15 * unit);
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    over = true;
    reader.join();
    demand(!too_much, "never more than capacity");
    demand(in_use() == 0, "nothing is left");
  });
  INFO(end.in_words());
  CHECK(end.good());
}
