// SPDX-License-Identifier: Apache-2.0
// The state of the devices over many processes: exact at every moment, right again after any kill, and honest about
// how far it sees.
#include "support/catch.hpp"
#include "support/child.hpp"
#include "support/descriptors.hpp"
#include "support/host_session.hpp"
#include "support/sanitizers.hpp"
#include "support/soak.hpp"
#include "support/story.hpp"

#include "host/ledger.hpp"
#include "host/profile.hpp"
#include "host/state_file.hpp"
#include "host/state_layout.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <random>
#include <thread>
#include <vector>

using namespace devshare;
using namespace devshare::test;
using host::Reason;
using namespace std::chrono_literals;
namespace code = acl::code;

namespace {

constexpr std::uint64_t unit = 1 << 20;

// A session whose device holds 40 units.
HostSession open_session() { return HostSession({{"CAPACITY", "40M"}}); }

// What malloc does to the ledger.
bool take(std::uint64_t bytes, std::int32_t device = 0) {
  if (host::ledger_claim(device, bytes) != 0) return false;
  host::ledger_commit(device, bytes);
  return true;
}

std::uint64_t in_use(std::int32_t device = 0) { return host::bytes_in_use(device); }

std::vector<std::string> names_in(const std::string& directory) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) names.push_back(entry.path().filename());
  return names;
}

// Memory that forked children share with the one who made it.
template <class T>
T* shared() {
  void* const memory = ::mmap(nullptr, sizeof(T), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  return memory == MAP_FAILED ? nullptr : ::new (memory) T();
}

// A child of this actor that runs `body` and then ends with no more ado.
pid_t spawn(const std::function<void()>& body) {
  const pid_t child = ::fork();
  if (child != 0) return child;
  body();
  ::_exit(0);
}

void spin(std::chrono::microseconds time) {
  const auto until = std::chrono::steady_clock::now() + time;
  while (std::chrono::steady_clock::now() < until) {
  }
}

int status_of(pid_t child) {
  int status = -1;
  return ::waitpid(child, &status, 0) == child ? status : -1;
}

}  // namespace

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

TEST_CASE("a program that closes all its descriptors joins anew with everything it has") {
  Story story;
  story.actor("closer", [](Actor& me) {
    const pid_t program = spawn([] {
      const HostSession session = open_session();
      demand(take(10 * unit), "it takes 10");
      demand(host::ledger_grant(0, 1) == 0, "and a direction");
      ::close_range(3, ~0U, 0);
      const int other = ::open("/dev/null", O_RDONLY);  // takes the number of one of ours
      int swept[2];
      demand(::pipe(swept) == 0, "a pipe");
      const pid_t sweeper = spawn([&] {
        const HostSession own = open_session();
        demand(in_use() == 0, "for a moment nobody knows of it");
        demand(take(5 * unit), "others go on");
        demand(!host::ledger_direction_on(0, 1), "its grant is as lost");
        demand(::write(swept[1], "!", 1) == 1, "the parent is told");
        for (;;) ::pause();
      });
      ::close(swept[1]);
      char told = 0;
      demand(::read(swept[0], &told, 1) == 1, "the sweeper has swept");
      ::close(swept[0]);
      demand(take(unit), "its next claim");
      demand(in_use() == 16 * unit, "brings back what it had");
      demand(::fcntl(other, F_GETFD) >= 0, "and the program's own file is left alone");
      ::kill(sweeper, SIGKILL);
      (void)status_of(sweeper);
      demand(in_use() == 11 * unit, "and it sweeps as before");
      const pid_t witness = spawn([] {
        const HostSession own = open_session();
        demand(in_use() == 11 * unit, "others see it again");
        demand(host::ledger_direction_on(0, 1), "with its grant");
      });
      demand(status_of(witness) == 0, "the witness is content");
    });
    me.expect_equal(status_of(program), 0, "the program is content");
  });
  story.run();
}

TEST_CASE("a state file that somebody deletes is made anew, and all find each other again") {
  Story story;
  story.actor("A", [](Actor& me) {
    const HostSession session = open_session();
    me.expect(take(10 * unit), "A takes 10");
    const std::string directory = ::getenv("DEVSHARE_HOST_STATE");
    for (const std::string& name : names_in(directory)) std::filesystem::remove(directory + "/" + name);
    me.step("deleted");
    me.pause_until("B", "took");
    me.expect_equal(in_use(), 15 * unit, "A looks, finds the new file and brings its bytes");
    me.step("joined");
    me.pause_until("B", "saw");
  });
  story.actor("B", [](Actor& me) {
    me.pause_until("A", "deleted");
    const HostSession session = open_session();
    me.expect(take(5 * unit), "B starts a new file");
    me.step("took");
    me.pause_until("A", "joined");
    me.expect_equal(in_use(), 15 * unit, "B sees A in it");
    me.step("saw");
  });
  story.run();
  CHECK(names_in(story.state_directory()).empty());
}

TEST_CASE("a process that is stopped with the lock stops nobody") {
  Story story;
  story.actor("A", [](Actor& me) {
    const HostSession session({{"CAPACITY", "40M"}, {"DEADLINE_MS", "200"}});
    me.expect(take(10 * unit), "A takes 10");
    const std::string directory = ::getenv("DEVSHARE_HOST_STATE");
    const std::string path = directory + "/" + names_in(directory).at(0);
    auto* const locked = shared<std::atomic<bool>>();
    const pid_t holder = spawn([&] {
      const int file = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
      struct flock lock {};
      lock.l_type = F_WRLCK;
      lock.l_len = 1;
      demand(::fcntl(file, F_SETLK, &lock) == 0, "it has the lock of the file");
      locked->store(true);
      ::raise(SIGSTOP);
    });
    while (!locked->load()) std::this_thread::sleep_for(1ms);
    me.expect(take(10 * unit), "what fits needs no lock");
    me.expect_equal(in_use(), 20 * unit, "the sum is still known");
    me.expect(!take(30 * unit), "what does not fit cannot be decided");
    me.expect(HostSession::reason() == Reason::timed_out, "and says so after the deadline");
    me.expect_equal(host::ledger_grant(0, 1), code::rt_memory_allocation, "nor can a grant");
    ::kill(holder, SIGKILL);
    (void)status_of(holder);
    me.expect(!take(30 * unit), "the next one is decided");
    me.expect(HostSession::reason() == Reason::capacity, "by capacity");
    me.expect_equal(host::ledger_grant(0, 1), 0, "and the grant given");
  });
  story.run();
}

TEST_CASE("machines with other devices share nothing, though they share the directory") {
  Story story;
  story.actor("A", [](Actor& me) {
    const HostSession session = open_session();
    me.expect(take(10 * unit), "A takes 10 of 40");
    const pid_t other = spawn([] {
      const HostSession own({{"CAPACITY", "50M"}});
      demand(host::device_state_scope() == "machine", "a machine too");
      demand(in_use() == 0, "but another one");
      demand(take(50 * unit), "with room of its own");
    });
    me.expect_equal(status_of(other), 0, "the other is content");
    me.expect_equal(in_use(), 10 * unit, "A sees its own");
  });
  story.run();
}

TEST_CASE("a place that cannot be trusted is not used: each process then counts for itself and says why") {
  const auto alone = [](const std::string& state, const std::string& why) {
    const ChildEnd end = in_child([&] {
      const HostSession session({{"CAPACITY", "40M"}, {"STATE", state}});
      demand(host::device_state_scope() == "process", "it is alone");
      demand(host::device_state_note().find(why) != std::string::npos, host::device_state_note().c_str());
      demand(take(40 * unit), "it has its capacity");
      demand(!take(1), "and no more");
      demand(in_use() == 40 * unit, "it knows its own bytes");
      demand(host::ledger_grant(0, 1) == 0 && host::ledger_direction_on(0, 1), "and its own grants");
      host::ledger_release(0, 40 * unit);
      demand(in_use() == 0, "down to none");
    });
    INFO(state << ": " << end.in_words());
    CHECK(end.good());
  };
  TempDirectory directory;
  SECTION("asked for") { alone("none", "STATE=none"); }
  SECTION("no parent directory") { alone("/nowhere/at/all", "cannot be made"); }
  SECTION("a link") {
    REQUIRE(::symlink("/tmp", directory.file("link").c_str()) == 0);
    alone(directory.file("link"), "link");
  }
  SECTION("a file") {
    std::ofstream(directory.file("file")) << "x";
    alone(directory.file("file"), "cannot be opened");
  }
  SECTION("open to others") {
    REQUIRE(::mkdir(directory.file("open").c_str(), 0700) == 0);
    REQUIRE(::chmod(directory.file("open").c_str(), 0755) == 0);
    alone(directory.file("open"), "mode");
    CHECK(names_in(directory.file("open")).empty());
  }
  SECTION("somebody else's") {
    if (::geteuid() != 0) DEVSHARE_SKIP("only root can give a directory to somebody else");
    REQUIRE(::mkdir(directory.file("theirs").c_str(), 0700) == 0);
    REQUIRE(::chown(directory.file("theirs").c_str(), 12345, 12345) == 0);
    alone(directory.file("theirs"), "belongs to user 12345");
    CHECK(names_in(directory.file("theirs")).empty());
  }
}

TEST_CASE("a file in its place that is not one is refused") {
  TempDirectory directory;
  const ChildOptions here{.set = {{"DEVSHARE_HOST_STATE", directory.path()}}};
  const ChildEnd maker = in_child(
      [] {
        const HostSession session = open_session();
        demand(take(unit), "a file is made");
        ::_exit(0);  // and left behind
      },
      here);
  REQUIRE(maker.good());
  REQUIRE(names_in(directory.path()).size() == 1);
  const std::string path = directory.file(names_in(directory.path()).at(0));
  const auto refused_for = [&](const std::string& why) {
    const ChildEnd end = in_child(
        [&] {
          const HostSession session = open_session();
          demand(host::device_state_scope() == "process", "it is alone");
          demand(host::device_state_note().find(why) != std::string::npos, host::device_state_note().c_str());
        },
        here);
    INFO(end.in_words());
    CHECK(end.good());
  };
  SECTION("what a process left behind is used again") {
    const ChildEnd end = in_child(
        [] {
          const HostSession session = open_session();
          demand(host::device_state_scope() == "machine", "the file is used");
          demand(in_use() == 0, "and nothing in it counts");
        },
        here);
    INFO(end.in_words());
    CHECK(end.good());
    CHECK(names_in(directory.path()).empty());
  }
  SECTION("a link") {
    std::filesystem::rename(path, directory.file("real"));
    REQUIRE(::symlink(directory.file("real").c_str(), path.c_str()) == 0);
    refused_for("cannot be opened");
  }
  SECTION("a second name") {
    REQUIRE(::link(path.c_str(), directory.file("second").c_str()) == 0);
    refused_for("more than one name");
  }
  SECTION("readable by others") {
    REQUIRE(::chmod(path.c_str(), 0644) == 0);
    refused_for("mode");
  }
  SECTION("a pipe") {
    std::filesystem::remove(path);
    REQUIRE(::mkfifo(path.c_str(), 0600) == 0);
    refused_for("regular");
  }
  SECTION("of another size") {
    REQUIRE(::truncate(path.c_str(), 100) == 0);
    refused_for("size");
  }
  SECTION("with other contents") {
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file << "something";
    file.close();
    refused_for("no state file");
  }
}

TEST_CASE("the process that finds no slot counts for itself and says why, and the one after a slot was freed does not") {
  Story story;
  story.actor("crowd", [](Actor& me) {
    const HostSession session = open_session();
    me.expect(take(unit), "it has a slot, as any process");
    // A lock belongs to a process, and so one process can hold every slot, as 1,024 processes would.
    const std::string directory = host::profile().state_directory;
    const std::uint64_t machine = std::stoull(names_in(directory).at(0).substr(std::strlen("devices-")), nullptr, 16);
    std::string refused;
    host::StateFile own = host::StateFile::open(host::open_state_directory(directory), machine, 5000, &refused);
    me.expect(static_cast<bool>(own), "it opens the file: " + refused);
    me.expect(own.lock(5000), "it has the file's lock");
    me.expect(own.reserve(host::slot_count), "the file has room for all slots");
    for (std::size_t index = 0; index < host::slot_count; ++index) {
      if (own.slot(index).pid.load() != 0) continue;
      own.slot(index).clear();
      me.expect(own.take_slot(index), "it takes a free slot");
      own.slot(index).pid.store(::getpid());
    }
    own.header().high_water.store(static_cast<std::uint32_t>(host::slot_count));
    own.unlock();
    me.step("all slots are taken");
    me.pause_until("late", "refused");
    me.expect(own.lock(5000), "it has the file's lock again");
    own.slot(700).clear();
    own.drop_slot(700);
    own.unlock();
    me.step("one is free");
    me.pause_until("late", "done");
  });
  story.actor("late", [](Actor& me) {
    me.pause_until("crowd", "all slots are taken");
    {
      const HostSession session = open_session();
      me.expect_equal(host::device_state_scope(), "process", "there is no slot left");
      me.expect_equal(host::device_state_note(), "1024 processes share the state file, and that is all it has room for",
                      "which is said");
      me.expect(take(40 * unit) && !take(1), "it has the capacity for itself");
      me.expect_equal(in_use(), 40 * unit, "and counts its own bytes");
      me.expect(host::ledger_grant(0, 1) == 0 && host::ledger_direction_on(0, 1), "and its grants");
    }
    me.step("refused");
    me.pause_until("crowd", "one is free");
    {
      const HostSession session = open_session();
      me.expect_equal(host::device_state_scope(), "machine", "the next session finds a slot");
      me.expect_equal(in_use(), unit, "and sees what others have");
      me.expect(!take(40 * unit) && take(39 * unit), "which counts");
    }
    me.step("done");
  });
  story.run();
}

TEST_CASE("a full file system means being alone, not a bus error") {
  if (::geteuid() != 0) DEVSHARE_SKIP("only root can mount a small file system");
  TempDirectory directory;
  // The header alone fits, or nothing does.
  for (const char* size : {"size=4k,mode=0700", "size=8k,mode=0700"}) {
    const ChildEnd end = in_child([&] {
      if (::unshare(CLONE_NEWNS) != 0 || ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
          ::mount("devshare-test", directory.path().c_str(), "tmpfs", 0, size) != 0) {
        std::printf("no mount: %s\n", std::strerror(errno));
        ::_exit(77);
      }
      const std::string filler = directory.file("filler");
      const int file = ::open(filler.c_str(), O_CREAT | O_WRONLY, 0600);
      char page[4096] = {1};
      demand(::write(file, page, sizeof(page)) == 4096, "a page of it is used");
      const HostSession session({{"CAPACITY", "40M"}, {"STATE", directory.path()}});
      demand(host::device_state_scope() == "process", "it is alone");
      demand(host::device_state_note().find("No space") != std::string::npos, host::device_state_note().c_str());
      demand(take(40 * unit) && !take(1), "and goes on");
    });
    if (end.exited && end.code == 77) DEVSHARE_SKIP("no own mounts here: " + end.output);
    INFO(size << ": " << end.in_words());
    CHECK(end.good());
  }
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
