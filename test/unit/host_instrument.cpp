// SPDX-License-Identifier: Apache-2.0
// The instrument: faults, delays, the journal, counters, and a kernel's view of device memory.
#include "support/catch.hpp"
#include "support/child.hpp"
#include "support/host_session.hpp"
#include "support/temp_directory.hpp"

#include "host/instrument.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

using namespace devshare;
using namespace devshare::test;
using acl::Entry;
using host::Reason;
using host::ViewAccess;
namespace code = acl::code;

namespace {

std::vector<std::string> lines_of(const std::string& path) {
  std::ifstream file(path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

acl::aclError device_of(const HostSession& session) {
  std::int32_t device = 0;
  return session->aclrtGetDevice(&device);
}

void* allocate(const HostSession& session, std::size_t size) {
  void* memory = nullptr;
  REQUIRE(session->aclrtMalloc(&memory, size, acl::malloc_policy::huge_first) == 0);
  return memory;
}

}  // namespace

TEST_CASE("nothing is armed unless it is asked for") {
  HostSession session;
  (void)device_of(session);
  CHECK_FALSE(host::instrument_armed());
  host::delay(Entry::aclrtFree, 0);
  CHECK(host::instrument_armed());
  host::clear();
  CHECK_FALSE(host::instrument_armed());
  host::fail(Entry::aclrtFree, 1, 0);  // a failure that reports success is none
  host::fail(Entry::none, 1, 5);
  host::fail_with_probability(Entry::aclrtFree, 0.0, 1, 5);
  CHECK_FALSE(host::instrument_armed());
}

TEST_CASE("the nth call fails, once, with its code, and the body is not run") {
  HostSession session;
  REQUIRE(session->aclrtSetDevice(0) == 0);
  host::fail(Entry::aclrtMalloc, 2, code::rt_drv_internal);
  void* first = nullptr;
  void* second = nullptr;
  CHECK(session->aclrtMalloc(&first, 64, 0) == 0);
  CHECK(session->aclrtMalloc(&second, 64, 0) == code::rt_drv_internal);
  CHECK(HostSession::reason() == Reason::injected);
  CHECK_THAT(HostSession::recent_text(), contains("aclrtMalloc") && contains("asked for"));
  CHECK(second == nullptr);
  CHECK(host::counters().allocations == 1);
  CHECK_FALSE(host::instrument_armed());
  CHECK(session->aclrtMalloc(&second, 64, 0) == 0);
  CHECK(session->aclrtFree(first) == 0);
  CHECK(session->aclrtFree(second) == 0);
  CHECK(host::counters() == host::Counters{});
}

TEST_CASE("faults asked for together strike each at its own call") {
  HostSession session;
  REQUIRE(session->aclrtSetDevice(0) == 0);
  host::fail(Entry::aclrtGetDevice, 1, 11);
  host::fail(Entry::aclrtGetDevice, 3, 33);
  host::fail(Entry::aclrtFree, 1, 44);
  CHECK(device_of(session) == 11);
  CHECK(device_of(session) == 0);
  CHECK(device_of(session) == 33);
  CHECK(device_of(session) == 0);
  CHECK(session->aclrtFree(nullptr) == 44);
  host::fail(Entry::aclrtGetDevice, 0, 55);
  for (int times = 0; times < 5; ++times) CHECK(device_of(session) == 55);
  host::clear();
  CHECK(device_of(session) == 0);
}

TEST_CASE("a probability with a seed fails the same calls every time, and about as many as it says") {
  HostSession session;
  REQUIRE(session->aclrtSetDevice(0) == 0);
  const auto pattern = [&](std::uint64_t seed) {
    host::fail_with_probability(Entry::aclrtGetDevice, 0.25, seed, 9);
    std::string calls;
    for (int call = 0; call < 2000; ++call) calls += device_of(session) == 9 ? 'x' : '.';
    host::clear();
    return calls;
  };
  const std::string first = pattern(1);
  CHECK(pattern(1) == first);
  CHECK(pattern(2) != first);
  const auto failed = std::count(first.begin(), first.end(), 'x');
  CHECK(failed > 400);
  CHECK(failed < 600);
}

TEST_CASE("a delay makes a call take at least that long, and no other call") {
  HostSession session;
  REQUIRE(session->aclrtSetDevice(0) == 0);
  host::delay(Entry::aclrtGetDevice, 30);
  const auto before = std::chrono::steady_clock::now();
  CHECK(device_of(session) == 0);
  CHECK(std::chrono::steady_clock::now() - before >= std::chrono::milliseconds(30));
}

TEST_CASE("faults and delays can be set by the environment, and strike once in a process") {
  const ChildEnd end = in_child(
      [] {
        const acl::Table& api = HostSession::api();
        std::int32_t device = 0;
        demand(api.aclInit(nullptr) == 0, "aclInit reads the environment");
        demand(api.aclrtGetDevice(&device) == code::rt_context_null, "the first call is made");
        demand(api.aclrtGetDevice(&device) == 7, "the second one fails");
        demand(api.aclrtGetDevice(&device) == code::rt_context_null, "once");
        demand(api.aclFinalize() == 0 && host::set("CAPACITY", "1G"), "another machine");
        demand(api.aclInit(nullptr) == 0, "in another session");
        for (int call = 0; call < 4; ++call) {
          demand(api.aclrtGetDevice(&device) == code::rt_context_null, "does not arm it again");
        }
        std::uint32_t count = 0;
        const auto before = std::chrono::steady_clock::now();
        demand(api.aclrtGetDeviceCount(&count) == 0, "a call that is delayed");
        demand(std::chrono::steady_clock::now() - before >= std::chrono::milliseconds(30), "takes its time");
      },
      {.set = {{"DEVSHARE_HOST_FAULT", "aclrtGetDevice:2:7"}, {"DEVSHARE_HOST_DELAY", "aclrtGetDeviceCount:30"}}});
  INFO(end.in_words());
  CHECK(end.good());
}

TEST_CASE("a probability and its seed can be set by the environment, and fail the same calls as the program's own") {
  const auto pattern = [](const HostSession& session) {
    std::string calls;
    for (int call = 0; call < 500; ++call) calls += device_of(session) == 9 ? 'x' : '.';
    return calls;
  };
  std::string by_program;
  {
    HostSession session;
    REQUIRE(session->aclrtSetDevice(0) == 0);
    host::fail_with_probability(Entry::aclrtGetDevice, 0.25, 1, 9);
    by_program = pattern(session);
  }
  HostSession session({{"FAULT", "aclrtGetDevice:0.25@1:9"}});
  REQUIRE(session->aclrtSetDevice(0) == 0);
  CHECK(by_program.find('x') != std::string::npos);
  CHECK(pattern(session) == by_program);
}

TEST_CASE("the journal has a line for each call, with order, process, thread, arguments and result") {
  TempDirectory directory;
  const std::string path = directory.file("journal");
  HostSession session({{"JOURNAL", path}});
  REQUIRE(session->aclrtSetDevice(1) == 0);
  void* memory = allocate(session, 4096);
  CHECK(session->aclrtFree(memory) == 0);
  CHECK(session->aclrtFree(nullptr) == code::invalid_param);
  CHECK(host::journal_to(""));
  CHECK(session->aclrtSetDevice(0) == 0);
  const std::vector<std::string> lines = lines_of(path);
  REQUIRE(lines.size() >= 4);
  const std::string who = fmt::format(R"("pid":{},"tid":{},)", ::getpid(), ::gettid());
  for (const std::string& line : lines) {
    CHECK_THAT(line,
               contains(R"({"order":)") && contains(R"("took":)") && contains(who) && contains(R"("arguments":{)"));
    CHECK(line.back() == '}');
  }
  CHECK_THAT(lines[lines.size() - 4], contains(R"("call":"aclrtSetDevice")") && contains(R"("result":0})"));
  CHECK_THAT(lines[lines.size() - 3], contains(R"("call":"aclrtMalloc")") && contains("4096"));
  CHECK_THAT(lines[lines.size() - 1], contains(R"("call":"aclrtFree")") && contains(R"("result":100000})"));
  CHECK(host::journal_lines_lost() == 0);
}

TEST_CASE("processes share a journal and no line is torn") {
  TempDirectory directory;
  const std::string path = directory.file("journal");
  constexpr int processes = 4;
  constexpr int calls = 300;
  const ChildEnd end = in_child([&] {
    std::vector<pid_t> children;
    for (int number = 0; number < processes; ++number) {
      const pid_t child = ::fork();
      if (child == 0) {
        HostSession session({{"JOURNAL", path}});
        demand(session->aclrtSetDevice(0) == 0, "device");
        for (int call = 0; call < calls; ++call) demand(device_of(session) == 0, "call");
        ::_exit(0);
      }
      children.push_back(child);
    }
    for (const pid_t child : children) {
      int status = -1;
      demand(::waitpid(child, &status, 0) == child && status == 0, "the children are content");
    }
  });
  INFO(end.in_words());
  REQUIRE(end.good());
  const std::vector<std::string> lines = lines_of(path);
  const auto whole = std::count_if(lines.begin(), lines.end(), [](const std::string& line) {
    return line.rfind(R"({"order":)", 0) == 0 && line.back() == '}' && line.find('{', 1) == line.rfind('{');
  });
  CHECK(static_cast<std::size_t>(whole) == lines.size());
  const auto asked = std::count_if(lines.begin(), lines.end(), [](const std::string& line) {
    return line.find(R"("call":"aclrtGetDevice")") != std::string::npos;
  });
  CHECK(asked == processes * calls);
}

TEST_CASE("the lines of several processes, sorted by their order, are the calls as they were made") {
  TempDirectory directory;
  const std::string path = directory.file("journal");
  constexpr int rounds = 20;
  const ChildEnd end = in_child([&] {
    // Two processes that call in turns.
    int to[2];
    int from[2];
    demand(::pipe(to) == 0 && ::pipe(from) == 0, "pipes");
    const pid_t child = ::fork();
    const bool first = child != 0;
    char word = 0;
    HostSession session({{"JOURNAL", path}});
    demand(session->aclrtSetDevice(first ? 0 : 1) == 0, "device");
    for (int round = 0; round < rounds; ++round) {
      if (first) {
        demand(device_of(session) == 0, "a call");
        demand(::write(to[1], "c", 1) == 1 && ::read(from[0], &word, 1) == 1, "the other's turn");
      } else {
        demand(::read(to[0], &word, 1) == 1 && device_of(session) == 0, "a call of the other process");
        demand(::write(from[1], "c", 1) == 1, "the first one's turn");
      }
    }
    if (!first) ::_exit(0);
    int status = -1;
    demand(::waitpid(child, &status, 0) == child && status == 0, "the child is content");
  });
  INFO(end.in_words());
  REQUIRE(end.good());
  struct Call {
    unsigned long long order;
    int pid;
    bool operator<(const Call& other) const { return order < other.order; }
  };
  std::vector<Call> calls;
  for (const std::string& line : lines_of(path)) {
    if (line.find(R"("call":"aclrtGetDevice")") == std::string::npos) continue;
    Call call{};
    unsigned long long took = 0;
    REQUIRE(std::sscanf(line.c_str(), R"({"order":%llu,"took":%llu,"pid":%d,)", &call.order, &took, &call.pid) == 3);
    calls.push_back(call);
  }
  REQUIRE(calls.size() == 2 * rounds);
  std::sort(calls.begin(), calls.end());
  CHECK(calls[0].pid != calls[1].pid);
  for (std::size_t i = 0; i < calls.size(); ++i) CHECK(calls[i].pid == calls[i % 2].pid);
}

TEST_CASE("a journal that cannot be opened is refused and the old one goes on") {
  TempDirectory directory;
  HostSession session;
  REQUIRE(session->aclrtSetDevice(0) == 0);
  REQUIRE(host::journal_to(directory.file("journal")));
  CHECK_FALSE(host::journal_to("/nowhere/at/all"));
  CHECK(errno == ENOENT);
  CHECK(device_of(session) == 0);
  CHECK(lines_of(directory.file("journal")).size() == 1);
  CHECK(host::journal_to(""));
}

TEST_CASE("a program that closes all its descriptors loses lines, not the files it opens next") {
  TempDirectory directory;
  const std::string other = directory.file("other");
  const ChildEnd end = in_child([&] {
    HostSession session;
    demand(session->aclrtSetDevice(0) == 0, "device");
    demand(host::journal_to(directory.file("journal")), "journal");
    ::close_range(3, ~0U, 0);
    while (::open(other.c_str(), O_CREAT | O_RDWR | O_APPEND, 0600) < 20) {
    }
    demand(device_of(session) == 0, "a call");
    demand(host::journal_lines_lost() == 1, "its line is lost, and counted");
    demand(::lseek(10, 0, SEEK_END) == 0, "and did not go into the program's file");
  });
  INFO(end.in_words());
  CHECK(end.good());
}

TEST_CASE("calls can be kept in memory and read back in their order") {
  HostSession session;
  REQUIRE(session->aclrtSetDevice(0) == 0);
  host::record_calls(true);
  void* memory = allocate(session, 100);
  CHECK(session->aclrtFree(memory) == 0);
  CHECK(session->aclrtFree(memory) == code::rt_param_invalid);
  pid_t thread = 0;
  std::thread([&] {
    thread = ::gettid();
    CHECK(device_of(session) == code::rt_context_null);
  }).join();
  const std::vector<host::CallRecord> calls = host::recorded_calls();
  REQUIRE(calls.size() == 4);
  CHECK(calls[3].pid == ::getpid());
  CHECK(calls[3].tid == thread);
  CHECK(calls[0].call == Entry::aclrtMalloc);
  CHECK(calls[1].call == Entry::aclrtFree);
  CHECK(calls[1].result == 0);
  CHECK(calls[2].result == code::rt_param_invalid);
  CHECK(calls[0].order + calls[0].took <= calls[1].order);
  CHECK(calls[0].pid == ::getpid());
  CHECK(calls[0].tid == ::gettid());
  CHECK_THAT(calls[0].arguments, contains("100"));
  host::record_calls(false);
  CHECK(device_of(session) == 0);
  CHECK(host::recorded_calls().empty());
}

TEST_CASE("the instrument may be used by many threads at once") {
  HostSession session;
  host::record_calls(true);
  std::vector<std::thread> threads;
  for (int number = 0; number < 4; ++number) {
    threads.emplace_back([&, number] {
      for (int round = 0; round < 200; ++round) {
        if (number == 0) {
          host::fail(Entry::aclrtGetDevice, 2, 5);
          host::delay(Entry::aclrtFree, 0);
        } else if (number == 1) {
          (void)host::recorded_calls();
          if (round % 50 == 0) host::clear();
        } else {
          (void)session->aclrtSetDevice(number % 2);
          (void)device_of(session);
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(host::recorded_calls().size() == 800);
  host::record_calls(false);
}

TEST_CASE("counters show what this process has, and are as before when it is given back") {
  HostSession session;
  REQUIRE(session->aclrtSetDevice(0) == 0);
  const host::Counters before = host::counters();
  CHECK(before == host::Counters{});
  void* memory = allocate(session, 1 << 20);
  REQUIRE(session->aclrtDeviceEnablePeerAccess(1, 0) == 0);
  const host::Counters during = host::counters();
  CHECK(during.allocations == 1);
  CHECK(during.bytes >= 1 << 20);
  CHECK(during.descriptors == 1);
  CHECK(during.peer_grants == 1);
  CHECK(host::bytes_in_use(0) == during.bytes);
  CHECK(host::bytes_in_use(1) == 0);
  CHECK(host::bytes_in_use(-1) == 0);
  CHECK(host::bytes_in_use(99) == 0);
  CHECK(session->aclrtDeviceDisablePeerAccess(1) == 0);
  CHECK(session->aclrtFree(memory) == 0);
  CHECK(host::counters() == before);
}

TEST_CASE("the view shows what copies write, and copies read what is written through it") {
  HostSession session;
  REQUIRE(session->aclrtSetDevice(0) == 0);
  auto* const memory = static_cast<std::byte*>(allocate(session, 8192));
  char text[] = "seen by the kernel";
  REQUIRE(session->aclrtMemcpy(memory + 4096, 4096, text, sizeof(text), acl::memcpy_kind::host_to_device) == 0);
  devshare::detail::Cause why;
  auto* const view = static_cast<char*>(host::view_of(memory + 4096, 4096, ViewAccess::read_write, &why));
  REQUIRE(view != nullptr);
  CHECK(std::string(view) == text);
  CHECK(host::counters().views == 1);
  std::strcpy(view, "written by it");
  char back[32] = {};
  REQUIRE(session->aclrtMemcpy(back, sizeof(back), memory + 4096, sizeof(back), acl::memcpy_kind::device_to_host) == 0);
  CHECK(std::string(back) == "written by it");
  CHECK(session->aclrtFree(memory) == 0);
  CHECK(host::counters().views == 0);
}

TEST_CASE("a view that cannot be had says why") {
  detail::Cause why;
  CHECK(host::view_of(&why, 1, ViewAccess::read, &why) == nullptr);
  CHECK(why.reason == Reason::not_initialised);
  HostSession session;
  REQUIRE(session->aclrtSetDevice(0) == 0);
  CHECK(host::view_of(&why, 1, ViewAccess::read, &why) == nullptr);
  CHECK(why.reason == Reason::not_device_memory);
  CHECK(host::view_of(nullptr, 0, ViewAccess::read) == nullptr);
  auto* const memory = static_cast<std::byte*>(allocate(session, 1000));
  CHECK(host::view_of(memory, 1001, ViewAccess::read, &why) == nullptr);
  CHECK(why.reason == Reason::out_of_bounds);
  CHECK(why.needed == 1001);
  CHECK(why.available == 1000);
  CHECK(host::view_of(memory + 1, SIZE_MAX, ViewAccess::read, &why) == nullptr);
  CHECK(why.reason == Reason::out_of_bounds);
  CHECK(host::view_of(memory, 1000, ViewAccess::read, &why) != nullptr);
  CHECK(session->aclrtFree(memory) == 0);
  CHECK(host::view_of(memory, 1, ViewAccess::read, &why) == nullptr);
  CHECK(why.reason == Reason::not_device_memory);
}

TEST_CASE("read-only memory has a view to read and none to write") {
  HostSession session;
  REQUIRE(session->aclrtSetDevice(0) == 0);
  void* memory = nullptr;
  REQUIRE(session->aclrtMalloc(&memory, 64, acl::malloc_policy::user_space_read_only) == 0);
  detail::Cause why;
  CHECK(host::view_of(memory, 64, ViewAccess::read, &why) != nullptr);
  CHECK(host::view_of(memory, 64, ViewAccess::read_write, &why) == nullptr);
  CHECK(why.reason == Reason::read_only);
  CHECK(session->aclrtFree(memory) == 0);
}
