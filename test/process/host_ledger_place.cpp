// SPDX-License-Identifier: Apache-2.0
// Where processes meet to share the state of the devices, and what becomes of them where they cannot: each counts for
// itself and says why.
#include "host/ledger.hpp"
#include "host/profile.hpp"
#include "host/state_file.hpp"
#include "host/state_layout.hpp"
#include "ledger.hpp"
#include "support/catch.hpp"
#include "support/child.hpp"
#include "support/host_session.hpp"
#include "support/isolation.hpp"
#include "support/story.hpp"

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

using namespace devshare;
using namespace devshare::test;
using host::Reason;
using namespace std::chrono_literals;
namespace code = acl::code;

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

TEST_CASE("a process that is stopped with the lock stops nobody, and one that is killed with it leaves it free (B105)") {
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

TEST_CASE(
    "the process that finds no slot counts for itself and says why, and the one after a slot was freed does not") {
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
  if (const std::string why = why_no_own_mounts(); !why.empty()) DEVSHARE_SKIP(why);
  TempDirectory directory;
  // The header alone fits, or nothing does.
  for (const char* size : {"size=4k,mode=0700", "size=8k,mode=0700"}) {
    const ChildEnd end = in_child([&] {
      demand(::unshare(CLONE_NEWNS) == 0 && ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
                 ::mount("devshare-test", directory.path().c_str(), "tmpfs", 0, size) == 0,
             "a small file system");
      const std::string filler = directory.file("filler");
      const int file = ::open(filler.c_str(), O_CREAT | O_WRONLY, 0600);
      char page[4096] = {1};
      demand(::write(file, page, sizeof(page)) == 4096, "a page of it is used");
      const HostSession session({{"CAPACITY", "40M"}, {"STATE", directory.path()}});
      demand(host::device_state_scope() == "process", "it is alone");
      demand(host::device_state_note().find("No space") != std::string::npos, host::device_state_note().c_str());
      demand(take(40 * unit) && !take(1), "and goes on");
    });
    INFO(size << ": " << end.in_words());
    CHECK(end.good());
  }
}
