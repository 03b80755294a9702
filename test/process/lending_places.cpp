// SPDX-License-Identifier: Apache-2.0
// The names at which a lender and its borrowers meet, and other users.
#include "lend_one.hpp"
#include "raw_peer.hpp"

#include <array>
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <grp.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace devshare;
using namespace devshare::test;
namespace fs = std::filesystem;

namespace {

constexpr std::size_t size = lent_size;
constexpr uid_t nobody = 65534;

void become_nobody(Actor& me) {
  me.expect(::setgroups(0, nullptr) == 0 && ::setgid(nobody) == 0 && ::setuid(nobody) == 0, "it is another user now");
}

}  // namespace

TEST_CASE("other users are let in as far as both policies say, and then it is the runtime's rule that holds") {
  if (::geteuid() != 0) DEVSHARE_SKIP("only root can play two users");
  static const std::vector<uid_t> those{0, nobody};
  static const std::vector<uid_t> others{1};
  const auto answers = [](bool yes) {
    return Allow::ask([](const PeerProcess& peer, void* answer) { return peer.pid > 0 && answer != nullptr; },
                      yes ? const_cast<char*>("yes") : nullptr);
  };
  const auto throws = Allow::ask(
      [](const PeerProcess&, void*) -> bool {
#if defined(__cpp_exceptions)
        throw 1;
#else
        return false;
#endif
      },
      nullptr);
  struct Policy {
    const char* name;
    Allow allow;
    bool lets_in;
  };
  const Policy policies[] = {
      {"same_user", Allow::same_user(), false},          {"everybody", Allow::everybody(), true},
      {"a list that has it", Allow::users(those), true}, {"a list of others", Allow::users(others), false},
      {"a function that says yes", answers(true), true}, {"a function that says no", answers(false), false},
      {"a function that throws", throws, false},         {"no function", Allow::ask(nullptr, nullptr), false},
  };
  for (const bool lender_is_root : {true, false}) {
    for (const bool by_path : {true, false}) {
      for (const Policy& policy : policies) {
        CAPTURE(lender_is_root, by_path, policy.name);
        Story story;
        ::chmod(fs::path(story.file("x")).parent_path().c_str(), 0777);
        const Endpoint endpoint = by_path ? Endpoint::path(story.file("lender")) : abstract(story, "lender");
        story.actor("A", [&](Actor& me) {
          if (!lender_is_root) become_nobody(me);
          Told told;
          lend(me, endpoint, "B", 0, &told, policy.allow);
          // Whom the socket itself keeps out does not come as far as the policy.
          const bool kept_out = by_path && lender_is_root && !policy.allow.other_users();
          me.expect_equal(told.count(Kind::refused), policy.lets_in || kept_out ? 0U : 1U, "A is told whom it refused");
          me.expect_equal(told.count(Kind::not_imported), policy.lets_in ? 1U : 0U, "and who could not import");
        });
        story.actor("B", [&](Actor& me) {
          if (lender_is_root) become_nobody(me);
          const Party b(me);
          me.pause_until("A", "serves");
          // B would not take anything from nobody unless it says so; root may always lend.
          if (!lender_is_root && policy.lets_in) {
            refused_as(me, Borrower::connect(b.device, endpoint, 10s), Errc::not_permitted, "B has a policy too");
            refused_as(me, Borrower::connect(b.device, endpoint, 10s, Allow::users(others)), Errc::not_permitted,
                       "of its own");
            refused_as(me, Borrower::connect(b.device, endpoint, 10s, throws), Errc::not_permitted, "which may throw");
          }
          const auto refused = borrow(b.device, endpoint, "m", 10s,
                                      {.lender = lender_is_root ? Allow::same_user() : Allow::users(those)});
          if (policy.lets_in) {
            b.refused(refused, {Errc::not_authorised, code::rt_drv_internal, Reason::user_refused},
                      "the runtime says no");
          } else {
            refused_as(me, refused, Errc::not_permitted, "the policy says no");
          }
          b.leave();
          me.step("done");
        });
        story.run();
      }
    }
  }
}

TEST_CASE("a path is for its user, or for all where the policy may let them in, whatever the umask", "[any library]") {
  Story story;
  story.actor("A", [&](Actor& me) {
    const Party a(me);
    const auto mode_of = [](const std::string& path) {
      struct stat there {};
      return ::stat(path.c_str(), &there) == 0 ? there.st_mode & 07777 : 0;
    };
    for (const mode_t mask : {0U, 022U, 077U, 0777U}) {
      const mode_t before = ::umask(mask);
      for (const bool all : {false, true}) {
        const std::string path = story.file(fmt::format("{:o}{}", mask, all));
        const Allow allow = all ? Allow::everybody() : Allow::same_user();
        const Lender lender = me.must(Lender::at(a.runtime, Endpoint::path(path), {.borrowers = allow}), "an endpoint");
        me.expect_equal(mode_of(path), all ? 0666U : 0600U & ~mask, fmt::format("under the umask {:o}", mask));
        me.expect_equal(mode_of(path + ".lock") & 0077U, 0U, "its lock is its user's");
      }
      ::umask(before);
    }
    a.leave();
  });
  story.run();
}

// The program that the next case becomes.
TEST_CASE("borrow by the descriptor in DEVSHARE_TEST_DESCRIPTOR", "[.inherited]") {
  const char* const number = std::getenv("DEVSHARE_TEST_DESCRIPTOR");
  REQUIRE(number != nullptr);
  const Runtime runtime = *Runtime::open();
  const Device device = *runtime.device(DeviceId{0});
  auto lease = borrow(device, Endpoint::descriptor(std::atoi(number)), "m", 30s);
  REQUIRE(lease);
  Bytes bytes(size);
  REQUIRE(copy_to_host(device, bytes, lease->bytes()));
  CHECK(bytes == pattern(size, 4));
}

TEST_CASE("one end of a socketpair is an endpoint for a child, and for the program that it becomes", "[any library]") {
  for (const bool exec : {false, true}) {
    CAPTURE(exec);
    Story story;
    int pair[2];
    REQUIRE(::socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair) == 0);
    story.actor("A", [&](Actor& me) {
      ::close(pair[1]);
      const Party a(me);
      {
        Told told;
        Lender lender =
            me.must(Lender::at(a.runtime, Endpoint::descriptor(pair[0]), told.options()), "A takes one end");
        Lent lent = me.must(lender.offer("m", a.allocate(pattern(size, 4))), "A offers");
        Serving serving = me.must(serve(lender), "a thread serves");
        me.expect(soon([&] { return told.count(Kind::returned) == 1; }), "B borrows and returns");
        me.must(me.must(std::move(lent).close(30s), "it is returned").close(), "and freed");
      }
      me.must(a.runtime.finalize(), "A leaves");
    });
    story.actor("B", [&](Actor& me) {
      ::close(pair[0]);
      if (exec) {
        ::setenv("DEVSHARE_TEST_DESCRIPTOR", std::to_string(pair[1]).c_str(), 1);
        me.exec({fs::read_symlink("/proc/self/exe").string(), "[.inherited]"});
      }
      const Party b(me);
      borrows(b, Endpoint::descriptor(pair[1]), 4);
      me.must(b.runtime.finalize(), "B leaves");
    });
    story.run();
    ::close(pair[0]);
    ::close(pair[1]);
  }
}

TEST_CASE("a listening socket that was passed to a lender is served like its own", "[any library]") {
  Story story;
  const Endpoint endpoint = Endpoint::path(story.file("lender"));
  story.actor("A", [&](Actor& me) {
    const int socket = ::socket(AF_UNIX, SOCK_SEQPACKET, 0);
    const detail::Address address = detail::address_of(endpoint);
    me.expect(
        ::bind(socket, reinterpret_cast<const sockaddr*>(&address.name), address.size) == 0 && ::listen(socket, 8) == 0,
        "somebody listens");
    const Party a(me);
    {
      Lender lender = me.must(Lender::at(a.runtime, Endpoint::descriptor(socket)), "A takes it over");
      Lent lent = me.must(lender.offer("m", a.allocate(pattern(size))), "A offers");
      Serving serving = me.must(serve(lender), "a thread serves");
      me.step("serves");
      me.pause_until("B", "done");
      me.must(me.must(std::move(lent).close(30s), "it is returned").close(), "and freed");
    }
    me.expect(fs::exists(story.file("lender")), "the name was not A's, and is left");
    me.must(a.runtime.finalize(), "A leaves");
  });
  for (const std::string name : {"B", "C"}) {
    story.actor(name, [&, name](Actor& me) {
      if (name == "B") me.pause_until("C", "done");
      me.pause_until("A", "serves");
      const Party b(me);
      borrows(b, endpoint);
      b.leave();
      me.step("done");
    });
  }
  story.run();
}

TEST_CASE("what a killed lender left is taken over; one that lives is not, and leaves nothing when it ends (B062)",
          "[any library]") {
  Story story;
  const Endpoint endpoint = Endpoint::path(story.file("lender"));
  story.actor("A", [&](Actor& me) {
    const Party a(me);
    const Lender lender = me.must(Lender::at(a.runtime, endpoint), "A has an endpoint");
    me.step("serves");
    me.pause_until("B", "was refused");
    me.step("dies");
  });
  story.actor("B", [&](Actor& me) {
    const Party b(me);
    me.pause_until("A", "serves");
    refused_as(me, Lender::at(b.runtime, endpoint), Errc::endpoint_in_use, "A is there");
    me.step("was refused");
    me.pause_until_ended("A");
    me.expect(fs::exists(story.file("lender")), "A has left its socket");
    refused_as(me, borrow(b.device, endpoint, "m", Deadline::now()), Errc::no_lender, "where nobody is");
    for (int round = 0; round < 3; ++round) {
      Lender lender = me.must(Lender::at(b.runtime, endpoint), "B takes it over");
      refused_as(me, Lender::at(b.runtime, endpoint), Errc::endpoint_in_use, "and has it now");
      me.must(std::move(lender).close(), "until it ends");
      me.expect(!fs::exists(story.file("lender")) && !fs::exists(story.file("lender.lock")), "and leaves nothing");
    }
    b.leave();
  });
  story.kill("A", at("dies"));
  story.run();
}

TEST_CASE("what somebody else has put at a lender's name, or at its lock's, is not touched (B072)", "[any library]") {
  Story story;
  story.actor("A", [&](Actor& me) {
    const Party a(me);
    const auto all_of = [](const fs::path& folder) {
      std::vector<std::string> names;
      for (const auto& entry : fs::directory_iterator(folder)) names.push_back(entry.path().filename().string());
      std::sort(names.begin(), names.end());
      return names;
    };
    const std::pair<const char*, std::function<void(const fs::path&)>> plants[] = {
        {"a file", [](const fs::path& path) { std::ofstream(path) << "dear"; }},
        {"a directory", [](const fs::path& path) { fs::create_directory(path); }},
        {"a link to nothing", [](const fs::path& path) { fs::create_symlink("nothing", path); }},
        {"a link to a file",
         [](const fs::path& path) {
           std::ofstream(path.parent_path() / "target") << "dear";
           fs::create_symlink("target", path);
         }},
        {"a fifo", [](const fs::path& path) { ::mkfifo(path.c_str(), 0600); }},
        {"a socket that somebody has",
         [](const fs::path& path) {
           const int socket = ::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
           const detail::Address address = detail::address_of(Endpoint::path(path.string()));
           (void)::bind(socket, reinterpret_cast<const sockaddr*>(&address.name), address.size);
           (void)::listen(socket, 1);  // for the life of the process
         }},
    };
    for (const bool at_lock : {false, true}) {
      int number = 0;
      for (const auto& [what, plant] : plants) {
        const fs::path folder = story.file(fmt::format("{}{}", at_lock ? "lock" : "name", number++));
        fs::create_directory(folder);
        plant(folder / (at_lock ? "s.lock" : "s"));
        const auto before = all_of(folder);
        const Endpoint endpoint = Endpoint::path((folder / "s").string());
        refused_as(me, Lender::at(a.runtime, endpoint), Errc::endpoint_in_use,
                   fmt::format("{} at {}", what, at_lock ? "the lock" : "the name"));
        me.expect(all_of(folder) == before, "all is as it was");
        for (const char* const name : {"s", "s.lock", "target"}) {
          if (!fs::is_regular_file(folder / name)) continue;
          me.expect_equal(fs::file_size(folder / name), 4U, "with its bytes");
        }
      }
    }
    const fs::path gone = story.file("no such folder") + "/s";
    refused_as(me, Lender::at(a.runtime, Endpoint::path(gone.string())), Errc::invalid_argument,
               "a folder that is not there");
    refused_as(me, Lender::at(a.runtime, Endpoint::path(story.file(""))), Errc::invalid_argument,
               "a folder is no name");
    me.must(a.runtime.finalize(), "A leaves");
  });
  story.run();
}

TEST_CASE("what somebody else has put at its names while it lived is not a lender's to remove (B072)",
          "[any library]") {
  Story story;
  story.actor("A", [&](Actor& me) {
    const Party a(me);
    const fs::path path = story.file("s");
    const fs::path lock = story.file("s.lock");
    const auto plant = [](const fs::path& at) {
      fs::remove(at);
      std::ofstream(at) << "dear";
    };
    for (const bool socket_too : {true, false}) {
      for (const bool lock_too : {true, false}) {
        Lender lender = me.must(Lender::at(a.runtime, Endpoint::path(path.string())), "A has an endpoint");
        if (socket_too) plant(path);
        if (lock_too) plant(lock);
        me.must(std::move(lender).close(), "the lender ends");
        me.expect_equal(fs::exists(path), socket_too, "its socket has gone, and what is another's has not");
        me.expect_equal(fs::exists(lock), lock_too, "and so with its lock");
        fs::remove(path);
        fs::remove(lock);
      }
    }
    a.leave();
  });
  story.run();
}

TEST_CASE(
    "of 50 lenders that want one path at once one has it, each time, and whoever borrows gets its memory (B072, B115)",
    "[any library]") {
  constexpr std::size_t processes = 5;
  constexpr std::size_t threads = 10;
  constexpr std::size_t rounds = 4;
  struct Race {
    std::array<std::atomic<std::size_t>, rounds> ready{};
    std::array<std::atomic<std::size_t>, rounds> won{};
    std::array<std::atomic<std::size_t>, rounds> lost{};
    std::array<std::atomic<std::size_t>, rounds> winner{};
  };
  Race& race = *::new (::mmap(nullptr, sizeof(Race), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0)) Race;
  Story story;
  const Endpoint endpoint = Endpoint::path(story.file("lender"));
  for (std::size_t p = 0; p < processes; ++p) {
    story.actor(fmt::format("A{}", p), [&, p](Actor& me) {
      const Party a(me);
      const auto run = [&](std::size_t number) {
        for (std::size_t round = 0; round < rounds; ++round) {
          ++race.ready[round];
          me.expect(soon([&] { return race.ready[round] == processes * threads; }), "all are at the start");
          Result<Lender> made = Lender::at(a.runtime, endpoint);
          if (!made) {
            me.expect(made.error().kind() == Errc::endpoint_in_use, fmt::format("it is taken: {}", made.error()));
            ++race.lost[round];
          } else {
            Lender lender = *std::move(made);
            race.winner[round] = number;
            ++race.won[round];
            Lent lent = me.must(lender.offer("m", a.allocate(pattern(size, number))), "the winner offers");
            Serving serving = me.must(serve(lender), "and serves");
            me.expect(soon([&] { return race.won[round] + race.lost[round] == processes * threads; }),
                      "all have tried");
            me.step(fmt::format("won {}", round));
            me.pause_until("B", fmt::format("borrowed {}", round));
            me.must(me.must(std::move(lent).close(30s), "it is returned").close(), "and freed");
          }
          me.expect(soon([&] { return race.won[round] + race.lost[round] == processes * threads; }), "all have tried");
        }
      };
      std::vector<std::thread> all;
      for (std::size_t t = 0; t < threads; ++t) all.emplace_back(run, p * threads + t);
      for (std::thread& each : all) each.join();
      a.leave();
    });
  }
  story.actor("B", [&](Actor& me) {
    const Party b(me);
    for (std::size_t round = 0; round < rounds; ++round) {
      me.expect(soon([&] { return race.won[round] + race.lost[round] == processes * threads; }), "all have tried");
      me.expect_equal(race.won[round].load(), 1U, "one has it");
      borrows(b, endpoint, race.winner[round]);
      me.step(fmt::format("borrowed {}", round));
    }
    b.leave();
  });
  story.run();
  ::munmap(&race, sizeof race);
}
