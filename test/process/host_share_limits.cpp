// SPDX-License-Identifier: Apache-2.0
// What sharing by key costs and how it fails when something runs out: descriptors, connections, wake-ups, patience.
#include "key_process.hpp"
#include "support/catch.hpp"
#include "support/descriptors.hpp"
#include "support/sanitizers.hpp"
#include "support/soak.hpp"

#include <fmt/format.h>

#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <csignal>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

using namespace devshare;
using namespace devshare::test;
using namespace std::chrono_literals;

namespace {

// The abstract name at which the exporter of a key listens: what a stranger can find in /proc/net/unix.
int connect_as_stranger(const Key& key) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string name = "devshare." + std::string(key.bytes, 16);
  std::memcpy(address.sun_path + 1, name.data(), name.size());
  const int socket = ::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  if (::connect(socket, reinterpret_cast<const sockaddr*>(&address), length) == 0) return socket;
  ::close(socket);
  return -1;
}

// Bounds the descriptors of this process.
void limit_descriptors(std::size_t most) {
  const rlimit limit{most, most};
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

std::size_t count_mappings() {
  std::ifstream maps("/proc/self/maps");
  std::size_t count = 0;
  for (std::string line; std::getline(maps, line);) ++count;
  return count;
}

// Voluntary and involuntary switches of the service thread of this process so far; -1 when there is none.
long switches_of_service_thread() {
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    std::ifstream name_file(task.path() / "comm");
    std::string name;
    std::getline(name_file, name);
    if (name != "devshare-serve") continue;
    std::ifstream status(task.path() / "status");
    long switches = 0;
    for (std::string line; std::getline(status, line);) {
      if (line.find("ctxt_switches:") != std::string::npos) switches += std::stol(line.substr(line.find(':') + 1));
    }
    return switches;
  }
  return -1;
}

// The descriptors that a program has which this process executes, by what they are. The pipe to it is left out, and the
// directory that it lists.
std::vector<std::string> what_a_program_inherits() {
  std::vector<std::string> found;
  FILE* const listing = ::popen("ls -l /proc/self/fd", "r");
  if (listing == nullptr) return found;
  std::array<char, 512> line{};
  while (std::fgets(line.data(), line.size(), listing) != nullptr) {
    const std::string text(line.data());
    const std::size_t arrow = text.find(" -> ");
    if (arrow == std::string::npos) continue;
    const std::string what = text.substr(arrow + 4, text.size() - arrow - 5);
    if (what.starts_with("pipe:") || what.starts_with("/proc/")) continue;
    found.push_back(what);
  }
  ::pclose(listing);
  return found;
}

}  // namespace

TEST_CASE("B049 ten thousand rounds leave both processes with the descriptors and the mappings they had") {
  Story story(180s * times_over());
  const int rounds = (under_sanitizer() ? 1'000 : 10'000) * times_over();
  // A thread's first allocations make mappings, and so may a heap that grows; each round would make thousands.
  constexpr int settled = 100;
  constexpr std::size_t slack = 16;
  story.actor("A", [rounds](Actor& me) {
    const Process a(me);
    const std::int32_t b = me.receive<std::int32_t>("B");
    std::size_t before = 0;
    std::size_t mappings = 0;
    for (int i = 0; i < rounds; ++i) {
      void* memory = a.allocate();
      const Key key = a.export_key(memory, listed);
      a.admit(key, b);
      me.send("B", key);
      me.receive<char>("B");
      a.close(key);
      a.free(memory);
      if (i == 0) before = count_descriptors();
      if (i == settled) mappings = count_mappings();
    }
    me.expect_equal(count_descriptors(), before, "A's descriptors");
    me.expect(count_mappings() <= mappings + slack,
              fmt::format("A has {} mappings, and had {}", count_mappings(), mappings));
    me.step("done");
  });
  story.actor("B", [rounds](Actor& me) {
    const Process b(me);
    me.send("A", b.bare_pid());
    std::size_t before = 0;
    std::size_t mappings = 0;
    for (int i = 0; i < rounds; ++i) {
      const Key key = me.receive<Key>("A");
      b.peek(b.import_key(key));
      b.close(key);
      if (i == 0) before = count_descriptors();
      if (i == settled) mappings = count_mappings();
      me.send("A", 'k');
    }
    me.expect_equal(count_descriptors(), before, "B's descriptors");
    me.expect(count_mappings() <= mappings + slack,
              fmt::format("B has {} mappings, and had {}", count_mappings(), mappings));
    me.pause_until("A", "done");
  });
  story.run();
}

TEST_CASE("B049 eight threads that share at once leave both processes with the descriptors they had") {
  Story story(180s);
  constexpr int threads = 8;
  constexpr int rounds = under_sanitizer() ? 20 : 250;
  const auto in_threads = [](const auto& part) {
    std::vector<std::thread> all;
    for (int i = 0; i < threads; ++i) all.emplace_back(part);
    for (std::thread& each : all) each.join();
  };
  story.actor("A", [&](Actor& me) {
    const Process a(me);
    const Key key = a.export_key(a.allocate(), open_to_all);  // what is opened once is open now
    me.send("B", key);
    me.pause_until("B", "connected");
    const std::size_t before = count_descriptors();
    std::mutex one_at_a_time;
    std::atomic<int> bad{0};
    in_threads([&] {
      if (api().aclrtSetDevice(0) != 0) ++bad;
      for (int i = 0; i < rounds; ++i) {
        void* memory = nullptr;
        Key own{};
        if (api().aclrtMalloc(&memory, size, acl::malloc_policy::huge_first) != 0 ||
            api().aclrtIpcMemGetExportKey(memory, size, own.bytes, sizeof own.bytes, open_to_all) != 0) {
          ++bad;
        }
        {
          const std::lock_guard lock(one_at_a_time);  // B answers in the order in which it was asked
          me.send("B", own);
          me.receive<char>("B");
        }
        if (api().aclrtIpcMemClose(own.bytes) != 0 || api().aclrtFree(memory) != 0) ++bad;
      }
    });
    me.expect_equal(bad.load(), 0, "every call succeeds");
    me.expect_equal(count_descriptors(), before, "A's descriptors");
    me.step("done");
  });
  story.actor("B", [&](Actor& me) {
    const Process b(me);
    const Key key = me.receive<Key>("A");
    b.peek(b.import_key(key));
    b.close(key);
    me.step("connected");
    const std::size_t before = count_descriptors();
    std::mutex one_at_a_time;
    std::atomic<int> bad{0};
    in_threads([&] {
      if (api().aclrtSetDevice(0) != 0) ++bad;
      for (int i = 0; i < rounds; ++i) {
        // Of the same key too, so that opening meets closing.
        void* same = nullptr;
        if (api().aclrtIpcMemImportByKey(&same, key.bytes, 1) != 0) ++bad;
        {
          const std::lock_guard lock(one_at_a_time);
          const Key own = me.receive<Key>("A");
          void* imported = nullptr;
          if (api().aclrtIpcMemImportByKey(&imported, own.bytes, 1) != 0 || b.peek(imported) != 0 ||
              api().aclrtIpcMemClose(own.bytes) != 0) {
            ++bad;
          }
          me.send("A", 'k');
        }
        if (api().aclrtIpcMemClose(key.bytes) != 0) ++bad;
      }
    });
    me.expect_equal(bad.load(), 0, "every call succeeds");
    me.expect_equal(count_descriptors(), before, "B's descriptors");
    me.pause_until("A", "done");
  });
  story.run();
}

TEST_CASE("B051 with 64 descriptors a process imports 500 keys and keeps them all") {
  Story story(120s);
  story.actor("A", [](Actor& me) {
    const Process a(me);
    std::vector<void*> blocks;
    for (int i = 0; i < 500; ++i) {
      void* memory = a.allocate();
      a.fill(memory, static_cast<unsigned char>(i));
      me.send("B", a.export_key(memory, open_to_all));
    }
    me.pause_until("B", "done");
  });
  story.actor("B", [](Actor& me) {
    limit_descriptors(64);
    const Process b(me);
    std::vector<void*> imported;
    for (int i = 0; i < 500; ++i) imported.push_back(b.import_key(me.receive<Key>("A")));
    int right = 0;
    for (std::size_t i = 0; i < imported.size(); ++i) right += b.peek(imported[i]) == static_cast<int>(i % 256);
    me.expect_equal(right, 500, "every import shows its own bytes");
    me.step("done");
  });
  story.run();
}

TEST_CASE("B053 an import without a descriptor to be had is refused with the limit, and works when there is one") {
  Story story;
  story.actor("A", [](Actor& me) {
    const Process a(me);
    me.send("B", a.export_key(a.allocate(), open_to_all));
    me.send("B", a.export_key(a.allocate(), open_to_all));
    me.pause_until("B", "done");
  });
  story.actor("B", [](Actor& me) {
    const Process b(me);
    const Key first = me.receive<Key>("A");
    const Key second = me.receive<Key>("A");
    limit_descriptors(128);
    std::vector<int> hoarded;
    const auto hoard = [&] {
      for (int copy = ::dup(0); copy >= 0; copy = ::dup(0)) hoarded.push_back(copy);
    };
    hoard();
    b.import_fails(first, code::rt_memory_allocation, Reason::descriptor_limit);  // none for a socket
    me.expect_equal(host::last_cause().available, std::uint64_t{128}, "the limit is named");
    b.has_text("128");
    for (int i = 0; i < 3; ++i) {
      ::close(hoarded.back());
      hoarded.pop_back();
    }
    b.import_key(first);
    b.close(first);
    hoard();
    b.import_fails(second, code::rt_memory_allocation, Reason::descriptor_limit);  // one comes and cannot be installed
    for (int i = 0; i < 2; ++i) {
      ::close(hoarded.back());
      hoarded.pop_back();
    }
    b.import_key(second);
    me.step("done");
  });
  story.run();
}

TEST_CASE("an exporter keeps serving whom it serves when it runs out of descriptors, and turns newcomers away") {
  Story story;
  story.actor("A", [](Actor& me) {
    limit_descriptors(128);
    const Process a(me);
    void* memory = a.allocate();
    me.send("B", a.export_key(memory, open_to_all));
    me.send("B", a.export_key(memory, open_to_all));
    me.send("C", a.export_key(memory, open_to_all));
    me.pause_until("B", "imported");
    std::vector<int> hoarded;
    for (int copy = ::dup(0); copy >= 0; copy = ::dup(0)) hoarded.push_back(copy);
    me.step("full");
    me.pause_until("C", "turned away");
    me.pause_until("B", "imported again");
    for (const int copy : hoarded) ::close(copy);
    me.step("roomy");
    me.pause_until("C", "done");
  });
  story.actor("B", [](Actor& me) {
    const Process b(me);
    b.import_key(me.receive<Key>("A"));
    me.step("imported");
    me.pause_until("C", "turned away");
    b.import_key(me.receive<Key>("A"));
    me.step("imported again");
    me.pause_until("C", "done");
  });
  story.actor("C", [](Actor& me) {
    const Process c(me);
    const Key key = me.receive<Key>("A");
    me.pause_until("A", "full");
    for (int i = 0; i < 3; ++i) c.import_fails(key, code::rt_drv_internal, Reason::descriptor_limit);
    me.step("turned away");
    me.pause_until("A", "roomy");
    c.import_key(key);
    me.step("done");
  });
  story.run();
}

TEST_CASE("an exporter serves a quarter of its descriptor limit in connections, and refuses the next newcomer") {
  Story story;
  story.actor("A", [](Actor& me) {
    limit_descriptors(64);
    const Process a(me);
    const Key key = a.export_key(a.allocate(), open_to_all);
    me.send("B", key);
    me.pause_until("B", "done");
    me.expect_equal(a.peek(a.import_key(key)), 0, "A is well");
  });
  story.actor("B", [](Actor& me) {
    const Process b(me);
    const Key key = me.receive<Key>("A");
    std::vector<int> strangers;
    for (int i = 0; i < 16; ++i) strangers.push_back(connect_as_stranger(key));
    b.import_fails(key, code::rt_drv_internal, Reason::descriptor_limit);
    ::close(strangers.back());
    me.expect(soon([&] {
                void* imported = nullptr;
                return api().aclrtIpcMemImportByKey(&imported, key.bytes, 1) == 0;
              }),
              "one of them leaves and there is room");
    me.step("done");
  });
  story.run();
}

TEST_CASE("what a stranger sends closes the stranger's connection and no other") {
  Story story;
  story.actor("A", [](Actor& me) {
    const Process a(me);
    void* memory = a.allocate();
    me.send("B", a.export_key(memory, open_to_all));
    me.send("B", a.export_key(memory, open_to_all));
    me.pause_until("B", "done");
    const std::size_t before = count_descriptors();
    me.expect(soon([] { return host::counters().connections == 1; }), "only B's connection is left");
    me.expect(count_descriptors() <= before, "no descriptor of the stranger's has got in");
    me.step("looked");
  });
  story.actor("B", [](Actor& me) {
    const Process b(me);
    const Key first = me.receive<Key>("A");
    const Key second = me.receive<Key>("A");
    b.import_key(first);
    const auto is_closed_for = [&](std::string_view what, const auto& say) {
      const int stranger = connect_as_stranger(first);
      me.expect(stranger >= 0, "a stranger can connect");
      say(stranger);
      char byte = 0;
      me.expect_equal(::recv(stranger, &byte, 1, 0), ssize_t{0}, what);
      ::close(stranger);
    };
    is_closed_for("one byte", [](int stranger) { ::send(stranger, "x", 1, 0); });
    is_closed_for("an empty message", [](int stranger) { ::send(stranger, "", 0, 0); });
    is_closed_for("far too much", [](int stranger) {
      const std::vector<char> much(65536, 'x');
      ::send(stranger, much.data(), much.size(), 0);
    });
    is_closed_for("a descriptor", [](int stranger) {
      char byte = 'x';
      iovec part{&byte, 1};
      alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
      msghdr header{};
      header.msg_iov = &part;
      header.msg_iovlen = 1;
      header.msg_control = control;
      header.msg_controllen = sizeof control;
      cmsghdr* rights = CMSG_FIRSTHDR(&header);
      rights->cmsg_level = SOL_SOCKET;
      rights->cmsg_type = SCM_RIGHTS;
      rights->cmsg_len = CMSG_LEN(sizeof(int));
      std::memcpy(CMSG_DATA(rights), &stranger, sizeof stranger);
      ::sendmsg(stranger, &header, 0);
    });
    b.import_key(second);
    me.step("done");
    me.pause_until("A", "looked");
  });
  story.run();
}

TEST_CASE("an idle exporter is never woken") {
  Story story;
  story.actor("A", [](Actor& me) {
    const Process a(me);
    me.send("B", a.export_key(a.allocate(), open_to_all));
    me.pause_until("B", "imported");
    me.expect(soon([] {
                const long before = switches_of_service_thread();
                std::this_thread::sleep_for(100ms);
                return before == switches_of_service_thread();
              }),
              "the service thread comes to rest");
    const long before = switches_of_service_thread();
    me.expect(before >= 0, "there is a service thread");
    std::this_thread::sleep_for(1s);
    me.expect_equal(switches_of_service_thread(), before, "its context switches after a second");
    me.step("done");
  });
  story.actor("B", [](Actor& me) {
    const Process b(me);
    b.import_key(me.receive<Key>("A"));
    me.step("imported");
    me.pause_until("A", "done");
  });
  story.run();
}

TEST_CASE("no signal of the program is ever handled by the service thread") {
  Story story;
  story.actor("A", [](Actor& me) {
    static std::atomic<bool> elsewhere{false};
    static pid_t main_thread;
    main_thread = ::gettid();
    struct sigaction action {};
    action.sa_handler = [](int) {
      if (::gettid() != main_thread) elsewhere = true;
    };
    ::sigaction(SIGUSR1, &action, nullptr);
    const Process a(me);
    a.export_key(a.allocate(), open_to_all);
    sigset_t mine;
    ::sigemptyset(&mine);
    ::sigaddset(&mine, SIGUSR1);
    ::pthread_sigmask(SIG_BLOCK, &mine, nullptr);  // the only other thread would have to take it
    for (int i = 0; i < 100; ++i) ::kill(::getpid(), SIGUSR1);
    std::this_thread::sleep_for(20ms);
    ::pthread_sigmask(SIG_UNBLOCK, &mine, nullptr);
    me.expect(!elsewhere, "the signals waited for the program's own thread");
  });
  story.run();
}

TEST_CASE("B066 a program that is executed finds no descriptor of ours") {
  Story story(120s);
  story.actor("A", [](Actor& me) {
    const Process a(me);
    for (int i = 0; i < 11; ++i) me.send("B", a.export_key(a.allocate(), open_to_all));
    const Key key = me.receive<Key>("B");
    a.import_key(key);
    a.close(key);
    me.step("imported");  // B has accepted a connection, too, and from now on hands out descriptors
    a.import_until("B", "done", key);
    me.step("stopped");
  });
  story.actor("B", [](Actor& me) {
    const std::vector<std::string> before = what_a_program_inherits();
    const Process b(me);
    Key own_key{};
    for (int i = 0; i < 10; ++i) {
      b.import_key(me.receive<Key>("A"));
      own_key = b.export_key(b.allocate(), open_to_all);
    }
    me.send("A", own_key);
    const Key another = me.receive<Key>("A");
    me.pause_until("A", "imported");
    std::atomic<bool> stop{false};
    std::atomic<int> bad{0};
    // Descriptors come and go all the while: made by this process, and received from the other.
    const auto again_and_again = [&](const auto& round) {
      return std::thread([&] {
        if (api().aclrtSetDevice(0) != 0) ++bad;
        while (!stop) round();
      });
    };
    const auto exports = [&] {
      void* memory = nullptr;
      Key own{};
      if (api().aclrtMalloc(&memory, size, acl::malloc_policy::huge_first) != 0 ||
          api().aclrtIpcMemGetExportKey(memory, size, own.bytes, sizeof own.bytes, open_to_all) != 0 ||
          api().aclrtIpcMemClose(own.bytes) != 0 || api().aclrtFree(memory) != 0) {
        ++bad;
      }
    };
    const auto imports = [&] {
      void* imported = nullptr;
      if (api().aclrtIpcMemImportByKey(&imported, another.bytes, 1) != 0 ||
          api().aclrtIpcMemClose(another.bytes) != 0) {
        ++bad;
      }
    };
    std::thread exporting = again_and_again(exports);
    std::thread importing = again_and_again(imports);
    constexpr int rounds = under_sanitizer() ? 20 : 200;
    for (int i = 0; i < rounds; ++i) {
      const std::vector<std::string> now = what_a_program_inherits();
      const std::string what = fmt::format("it inherits {}, and before there was a runtime {}", fmt::join(now, ", "),
                                           fmt::join(before, ", "));
      if (!me.expect(now == before, what)) break;
    }
    stop = true;
    exporting.join();
    importing.join();
    me.expect_equal(bad.load(), 0, "the threads exported and imported meanwhile");
    me.step("done");
    me.pause_until("A", "stopped");
  });
  story.run();
}
