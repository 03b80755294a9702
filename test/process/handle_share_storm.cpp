// SPDX-License-Identifier: Apache-2.0
// Many processes that share handles, among kills and forks: what the devices count is never more than there is, and
// nothing is left at the end.
#include "handle_process.hpp"
#include "support/catch.hpp"
#include "support/sanitizers.hpp"
#include "support/soak.hpp"

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <new>
#include <random>
#include <string>
#include <thread>
#include <vector>

using namespace devshare;
using namespace devshare::test;
using namespace std::chrono_literals;

namespace {

constexpr std::uint64_t capacity = 20 * handle_size;

// What the processes of a storm have in common: tokens for the taking, and what was seen.
struct Weather {
  std::array<std::atomic<std::uint64_t>, 8> tokens{};
  std::atomic<bool> over{false};
  std::atomic<std::uint64_t> shared{0};
  std::atomic<std::uint64_t> imported{0};
  std::atomic<std::uint64_t> most_seen{0};
  std::atomic<std::uint64_t> read{0};
};

Weather* make_weather() {
  void* const memory = ::mmap(nullptr, sizeof(Weather), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  return ::new (memory) Weather;
}

// A child that runs `body` in a session and ends with what it returns.
pid_t spawn(const std::function<int()>& body) {
  const pid_t child = ::fork();
  if (child < 0) std::abort();  // -1 would be everybody to kill
  if (child != 0) return child;
  host::set("CAPACITY", fmt::format("{}", capacity));
  if (api().aclInit(nullptr) != 0 || api().aclrtSetDevice(0) != 0) ::_exit(100);
  const int result = body();
  ::_exit(api().aclFinalize() == 0 ? result : 101);
}

// Makes, shares, imports and frees at random. 0, or the line of what should not have been.
int share_at_random(Weather& weather, unsigned seed) {
  std::minstd_rand random(seed);
  std::vector<Handle> held;
  acl::aclrtPhysicalMemProp property{};
  property.memAttr = 4;
  property.location = {0, acl::mem_location_type::device};
  while (!weather.over.load()) {
    Handle handle = nullptr;
    std::atomic<std::uint64_t>& place = weather.tokens[random() % weather.tokens.size()];
    if (random() % 2 == 0) {
      const acl::aclError made = api().aclrtMallocPhysical(&handle, (random() % 4 + 1) * handle_size, &property, 0);
      if (made != 0 && made != code::rt_memory_allocation) return __LINE__;
      if (made != 0) continue;
      std::uint64_t token = 0;
      if (api().aclrtMemExportToShareableHandle(handle, 0, open_to_all, &token) != 0) return __LINE__;
      place.store(token);
      weather.shared.fetch_add(1);
    } else {
      const acl::aclError result = api().aclrtMemImportFromShareableHandle(place.load(), 0, &handle);
      // Ended, killed, one's own, imported already; or its holders are gone and there is no room for it any more.
      const bool usual =
          result == code::rt_invalid_handle || result == code::rt_drv_internal || result == code::rt_memory_allocation;
      if (result != 0 && !usual) return __LINE__;
      if (result != 0) continue;
      weather.imported.fetch_add(1);
    }
    held.push_back(handle);
    while (held.size() > random() % 4) {
      if (api().aclrtFreePhysical(held.back()) != 0) return __LINE__;
      held.pop_back();
    }
  }
  return 0;
}

int status_of(pid_t child) {
  int status = -1;
  return ::waitpid(child, &status, 0) == child ? status : -1;
}

// How a process ended: its exit code, here the line of a surprise, or the signal.
std::string ended(int status) {
  return WIFEXITED(status) ? fmt::format("{}", WEXITSTATUS(status)) : fmt::format("signal {}", WTERMSIG(status));
}

}  // namespace

TEST_CASE("a storm of kills among those who share: never more than there is, and nothing at the end") {
  Story story(180s * times_over());
  story.actor("storm", [](Actor& me) {
    Weather& weather = *make_weather();
    std::minstd_rand random(4711);
    const pid_t reader = spawn([&] {
      while (!weather.over.load()) {
        const std::uint64_t seen = host::bytes_in_use(0);
        if (seen > weather.most_seen.load()) weather.most_seen.store(seen);
        weather.read.fetch_add(1);
        std::this_thread::sleep_for(100us);
      }
      return 0;
    });
    std::vector<pid_t> workers(5);
    for (pid_t& pid : workers) {
      pid = spawn([&, seed = static_cast<unsigned>(random())] { return share_at_random(weather, seed); });
    }
    const int kills = (under_sanitizer() ? 20 : 60) * times_over();
    for (int kill = 0; kill < kills; ++kill) {
      std::this_thread::sleep_for(std::chrono::microseconds(5'000 + random() % 20'000));
      pid_t& victim = workers[random() % workers.size()];
      ::kill(victim, SIGKILL);
      const int status = status_of(victim);
      me.expect(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL,
                fmt::format("a worker runs until it is killed, and does not end by itself: {}", ended(status)));
      victim = spawn([&, seed = static_cast<unsigned>(random())] { return share_at_random(weather, seed); });
    }
    weather.over.store(true);
    for (const pid_t pid : workers) me.expect_equal(ended(status_of(pid)), "0", "the last workers end by themselves");
    me.expect_equal(ended(status_of(reader)), "0", "the reader too");
    me.expect(weather.read.load() > 50, "there was reading");
    me.expect(weather.shared.load() > 100, fmt::format("there was sharing: {}", weather.shared.load()));
    me.expect(weather.imported.load() > 50, fmt::format("there was importing: {}", weather.imported.load()));
    me.expect(weather.most_seen.load() <= capacity, fmt::format("never too much: {}", weather.most_seen.load()));
    me.expect(weather.most_seen.load() > 0, "but something");
    const HandleProcess after(me, {{"CAPACITY", fmt::format("{}", capacity)}});
    me.expect_equal(host::bytes_in_use(0), std::uint64_t{0}, "nothing is left");
    after.release(after.make(capacity));
  });
  story.run();
}

TEST_CASE("B064 forking under threads that share handles neither hangs nor disturbs") {
  Story story(120s);
  story.actor("A", [](Actor& me) {
    const HandleProcess a(me);
    const Token theirs = me.receive<Token>("B");
    std::atomic<bool> stop{false};
    std::atomic<int> bad{0};
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&, i] {
        if (api().aclrtSetDevice(0) != 0) ++bad;
        acl::aclrtPhysicalMemProp property{};
        property.memAttr = 4;
        property.location = {0, acl::mem_location_type::device};
        while (!stop) {
          Handle handle = nullptr;
          if (i % 2 == 0) {
            std::uint64_t token = 0;
            if (api().aclrtMallocPhysical(&handle, handle_size, &property, 0) != 0) ++bad;
            if (api().aclrtMemExportToShareableHandle(handle, 0, listed, &token) != 0) ++bad;
            std::int32_t pid = 1;
            if (api().aclrtMemSetPidToShareableHandle(token, &pid, 1) != 0) ++bad;
          } else {
            const acl::aclError result = import_from(theirs, &handle);  // the other importer may have it
            if (result != 0 && result != code::rt_drv_internal) ++bad;
            if (result != 0) continue;
          }
          if (api().aclrtFreePhysical(handle) != 0) ++bad;
        }
      });
    }
    constexpr int forks = under_sanitizer() ? 20 : 100;
    for (int i = 0; i < forks; ++i) {
      const pid_t child = ::fork();
      if (child < 0) me.fail(fmt::format("no fork: {}", std::strerror(errno)));
      if (child == 0) {
        Handle handle = nullptr;
        const bool inert = import_from(theirs, &handle) == code::rt_context_null &&
                           host::counters().tokens_exported == 0 && host::counters().handles_imported == 0;
        ::_exit(inert ? 0 : 1);
      }
      me.expect_equal(ended(status_of(child)), "0", "the child has nothing");
    }
    stop = true;
    for (std::thread& thread : threads) thread.join();
    me.expect_equal(bad.load(), 0, "the threads noticed nothing");
    a.has_nothing_left();
    me.expect_equal(host::bytes_in_use(0), handle_size, "B's memory is all there is");
    me.step("done");
  });
  story.actor("B", [](Actor& me) {
    const HandleProcess b(me);
    me.send("A", b.share(b.make()));
    me.pause_until("A", "done");
  });
  story.run();
}
