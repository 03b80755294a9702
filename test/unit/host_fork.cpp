// SPDX-License-Identifier: Apache-2.0
// R4: what fork does to the host runtime, in the child and in the parent.
#include "host/block.hpp"
#include "host_session.hpp"
#include "support/catch.hpp"
#include "support/child.hpp"
#include "support/sanitizers.hpp"
#include "support/watchdog.hpp"

#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <thread>
#include <vector>

using devshare::host::block_counters;
using devshare::host::PinnedBlock;
using devshare::host::process_generation;
using devshare::host::Reason;
using devshare::host::session_word;
using devshare::test::demand;
using devshare::test::HostSession;
using devshare::test::in_child;
using devshare::test::last_reason;
using devshare::test::sees_races;
namespace code = devshare::acl::code;
namespace kind = devshare::acl::memcpy_kind;

namespace {

std::uint64_t session_now() { return __atomic_load_n(session_word(), __ATOMIC_ACQUIRE); }

void demand_refused(int got, const char* call) {
  demand(got == code::rt_context_null && last_reason() == Reason::forked, call);
}

}  // namespace

TEST_CASE("R4: in a forked child every call but aclInit and aclrtDeviceGetBareTgid is refused and says why") {
  HostSession session;
  void* const memory = session.allocate(4096);
  const std::uint64_t number = session_now();
  const std::uint32_t generation = process_generation();
  const auto end = in_child([&] {
    const auto& acl = session.acl;
    void* pointer = memory;
    char bytes[128] = {};
    std::int32_t value = 0;
    std::uint32_t count = 0;
    std::uint64_t references = 0;
    std::size_t size = 0;
    demand(session_now() != number, "the session is not the parent's");
    demand(session_now() % 2 == 0, "and there is none");
    demand(process_generation() != generation, "it is another process");
    demand(!devshare::host::initialised(), "not initialised");
    demand(!PinnedBlock(memory), "no address names a block");
    demand_refused(acl.aclFinalize(), "aclFinalize");
    demand_refused(acl.aclFinalizeReference(&references), "aclFinalizeReference");
    demand_refused(acl.aclrtGetVersion(&value, &value, &value), "aclrtGetVersion");
    demand(acl.aclrtGetSocName() == nullptr, "aclrtGetSocName");
    demand_refused(acl.aclrtGetDeviceCount(&count), "aclrtGetDeviceCount");
    demand_refused(acl.aclrtSetDevice(0), "aclrtSetDevice");
    demand_refused(acl.aclrtResetDevice(0), "aclrtResetDevice");
    demand_refused(acl.aclrtResetDeviceForce(0), "aclrtResetDeviceForce");
    demand_refused(acl.aclrtGetDevice(&value), "aclrtGetDevice");
    demand_refused(acl.aclrtCreateContext(&pointer, 0), "aclrtCreateContext");
    demand_refused(acl.aclrtDestroyContext(pointer), "aclrtDestroyContext");
    demand_refused(acl.aclrtSetCurrentContext(pointer), "aclrtSetCurrentContext");
    demand_refused(acl.aclrtGetCurrentContext(&pointer), "aclrtGetCurrentContext");
    demand_refused(acl.aclrtGetLogicDevIdByUserDevId(0, &value), "aclrtGetLogicDevIdByUserDevId");
    demand_refused(acl.aclrtDeviceCanAccessPeer(&value, 0, 1), "aclrtDeviceCanAccessPeer");
    demand_refused(acl.aclrtDeviceEnablePeerAccess(1, 0), "aclrtDeviceEnablePeerAccess");
    demand_refused(acl.aclrtDeviceDisablePeerAccess(1), "aclrtDeviceDisablePeerAccess");
    demand_refused(acl.aclrtDevicePeerAccessStatus(0, 1, &value), "aclrtDevicePeerAccessStatus");
    demand_refused(acl.aclrtMalloc(&pointer, 1, 0), "aclrtMalloc");
    demand_refused(acl.aclrtFree(memory), "aclrtFree");
    demand_refused(acl.aclrtFreeWithDevSync(memory), "aclrtFreeWithDevSync");
    demand_refused(acl.aclrtMallocHost(&pointer, 1), "aclrtMallocHost");
    demand_refused(acl.aclrtFreeHost(pointer), "aclrtFreeHost");
    demand_refused(acl.aclrtGetMemInfo(1, &size, &size), "aclrtGetMemInfo");
    demand_refused(acl.aclrtMemcpy(bytes, 1, memory, 1, kind::device_to_host), "aclrtMemcpy");
    demand_refused(acl.aclrtMemset(memory, 1, 0, 1), "aclrtMemset");
    demand_refused(acl.aclrtIpcMemGetExportKey(memory, 1, bytes, 65, 0), "aclrtIpcMemGetExportKey");
    demand_refused(acl.aclrtIpcMemSetImportPid(bytes, &value, 1), "aclrtIpcMemSetImportPid");
    demand_refused(acl.aclrtIpcMemImportByKey(&pointer, bytes, 0), "aclrtIpcMemImportByKey");
    demand_refused(acl.aclrtIpcMemClose(bytes), "aclrtIpcMemClose");
    demand_refused(acl.aclrtIpcMemSetAttr(bytes, 0, 0), "aclrtIpcMemSetAttr");
    demand_refused(acl.aclrtIpcMemImportPidInterServer(bytes, nullptr, 0), "aclrtIpcMemImportPidInterServer");
    const std::string text = session.message();
    demand(text.find("aclrtIpcMemImportPidInterServer: RT_CONTEXT_NULL") == 0, "the text names call and code");
    demand(text.find("R4") != std::string::npos, "and the rule");
    demand(acl.aclrtDeviceGetBareTgid(&value) == 0 && value == ::getpid(), "a pid of its own");
  });
  INFO(end.in_words());
  CHECK(end.good());
  char byte = 1;
  CHECK(session.acl.aclrtMemcpy(memory, 1, &byte, 1, kind::host_to_device) == 0);  // the parent goes on
  CHECK(session_now() == number);
}

TEST_CASE("a child that calls aclInit has a runtime of its own, and its children theirs") {
  HostSession session;
  void* const memory = session.allocate(4096);
  REQUIRE(session.acl.aclrtMemset(memory, 4096, 0x11, 4096) == 0);
  REQUIRE(PinnedBlock(memory).view() != nullptr);
  const std::uint64_t number = session_now();
  const auto end = in_child([&] {
    const auto& acl = session.acl;
    demand(acl.aclInit(nullptr) == 0, "aclInit");
    demand(session_now() != number && session_now() % 2 == 1, "a session of its own");
    demand(acl.aclrtMemset(memory, 1, 0, 1) == code::rt_context_null && last_reason() == Reason::no_context,
           "it has its parent's device no more than its memory");
    demand(acl.aclrtSetDevice(0) == 0, "aclrtSetDevice");
    demand(acl.aclrtMemset(memory, 1, 0, 1) == code::rt_drv_internal, "the parent's memory is not here");
    demand(block_counters().allocations == 0 && block_counters().descriptors == 0, "the counters start anew");
    void* mine = nullptr;
    demand(acl.aclrtMalloc(&mine, 4096, 0) == 0, "aclrtMalloc");
    demand(mine == memory, "the addresses start anew");
    demand(acl.aclrtMemset(mine, 4096, 0x22, 4096) == 0, "aclrtMemset");
    const auto grandchild = in_child([&] {
      demand_refused(acl.aclrtFree(mine), "a grandchild is refused");
      demand(acl.aclInit(nullptr) == 0, "and has its own runtime too");
      demand(acl.aclFinalize() == 0, "and ends it");
      demand(acl.aclrtFree(mine) == code::uninitialize, "after which it has none");
    });
    demand(grandchild.good(), grandchild.in_words().c_str());
    demand(acl.aclrtFree(mine) == 0, "aclrtFree");
    demand(acl.aclFinalize() == 0, "aclFinalize");
  });
  INFO(end.in_words());
  CHECK(end.good());
  unsigned char byte = 0;
  CHECK(session.acl.aclrtMemcpy(&byte, 1, memory, 1, kind::device_to_host) == 0);
  CHECK(byte == 0x11);
}

TEST_CASE("R1: a thread that forked has no device in its child until it sets one, whatever other threads set there") {
  if (sees_races()) DEVSHARE_SKIP("ThreadSanitizer does not follow threads that a child of several starts");
  HostSession session;
  const auto end = in_child([&] {
    const auto& acl = session.acl;
    std::int32_t device = -1;
    std::thread([&] {
      demand(acl.aclInit(nullptr) == 0 && acl.aclrtSetDevice(0) == 0, "another thread begins");
      demand(acl.aclrtGetDevice(&device) == 0 && device == 0, "and has its device");
    }).join();
    demand(acl.aclrtGetDevice(&device) == code::rt_context_null && last_reason() == Reason::no_context, "this has none");
    demand(acl.aclFinalize() == 0, "aclFinalize");
  });
  INFO(end.in_words());
  CHECK(end.good());
}

TEST_CASE("a child forked when nothing is initialised is a clean process") {
  const auto end = in_child([] {
    void* pointer = nullptr;
    std::uint32_t count = 0;
    const auto& acl = devshare::host::table();
    demand(acl.aclrtMalloc(&pointer, 1, 0) == code::uninitialize, "not initialised, not forked");
    demand(acl.aclrtGetDeviceCount(&count) == 0 && count == 2, "aclrtGetDeviceCount");
    HostSession session;
    demand(session.allocate(10) != nullptr, "its own memory");
  });
  INFO(end.in_words());
  CHECK(end.good());
}

TEST_CASE("a raw clone, which runs no fork handlers, is a child like any other") {
  if (devshare::test::under_sanitizer()) DEVSHARE_SKIP("sanitizers follow only fork");
  HostSession session;
  void* const memory = session.allocate(4096);
  const std::uint64_t number = session_now();
  const long child = ::syscall(SYS_clone, SIGCHLD, nullptr, nullptr, nullptr, nullptr);
  if (child == 0) {
    const auto& acl = session.acl;
    char byte = 0;
    int wrong = 0;
    if (session_now() == number) wrong |= 1;
    if (acl.aclrtMemcpy(&byte, 1, memory, 1, kind::device_to_host) != code::rt_context_null) wrong |= 2;
    if (last_reason() != Reason::forked) wrong |= 4;
    if (PinnedBlock(memory)) wrong |= 8;
    if (acl.aclInit(nullptr) != 0 || acl.aclrtSetDevice(0) != 0) wrong |= 16;
    void* mine = nullptr;
    if (acl.aclrtMalloc(&mine, 4096, 0) != 0 || acl.aclrtMemset(mine, 1, 1, 1) != 0) wrong |= 32;
    if (acl.aclFinalize() != 0) wrong |= 64;
    ::_exit(wrong);
  }
  REQUIRE(child > 0);
  int status = -1;
  REQUIRE(::waitpid(static_cast<pid_t>(child), &status, 0) == child);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
}

TEST_CASE("forking while other threads allocate, copy and free never hangs and hurts neither side") {
  const devshare::test::Watchdog watchdog("forks under load", std::chrono::seconds(240));
  HostSession session;
  std::atomic<bool> stop{false};
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int worker = 0; worker < 4; ++worker) {
    threads.emplace_back([&, worker] {
      const auto& acl = session.acl;
      std::vector<char> bytes(30'000, static_cast<char>(worker));
      if (acl.aclrtSetDevice(0) != 0) ++wrong;
      while (!stop) {
        void* memory = nullptr;
        void* host = nullptr;
        if (acl.aclrtMalloc(&memory, bytes.size(), 0) != 0) ++wrong;
        if (acl.aclrtMallocHost(&host, 100) != 0 || acl.aclrtFreeHost(host) != 0) ++wrong;
        for (int i = 0; i < 6; ++i) {
          if (acl.aclrtMemcpy(memory, bytes.size(), bytes.data(), bytes.size(), kind::host_to_device) != 0) ++wrong;
        }
        if (acl.aclrtFree(memory) != 0) ++wrong;
        if (acl.aclrtMalloc(nullptr, 1, 0) != code::invalid_param) ++wrong;
      }
    });
  }
  const int rounds = devshare::test::under_sanitizer() ? 30 : 150;
  for (int round = 0; round < rounds; ++round) {
    const pid_t child = ::fork();
    if (child == 0) {
      const auto& acl = session.acl;
      char byte = 1;
      void* mine = nullptr;
      int bad = 0;
      if (acl.aclrtSetDevice(0) != code::rt_context_null) bad |= 1;
      if (acl.aclInit(nullptr) != 0 || acl.aclrtSetDevice(0) != 0) bad |= 2;
      if (acl.aclrtMalloc(&mine, 100, 0) != 0) bad |= 4;
      if (acl.aclrtMemcpy(mine, 1, &byte, 1, kind::host_to_device) != 0 || acl.aclrtFree(mine) != 0) bad |= 8;
      if (acl.aclFinalize() != 0) bad |= 16;
      ::_exit(bad);
    }
    int status = -1;
    if (child < 0 || ::waitpid(child, &status, 0) != child || !WIFEXITED(status) || WEXITSTATUS(status) != 0) {
      UNSCOPED_INFO("child of round " << round << " ended with " << status);
      ++wrong;
    }
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
  CHECK(block_counters().allocations == 0);
}
