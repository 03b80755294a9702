// SPDX-License-Identifier: Apache-2.0
// Devices and contexts of the host runtime: counts, threads, numbers, and what is refused with which code.
#include "support/catch.hpp"
#include "support/child.hpp"
#include "support/host_session.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <thread>
#include <vector>

using namespace devshare;
using namespace devshare::test;
using host::Reason;
namespace code = acl::code;

namespace {

std::int32_t current(const acl::Table& api) {
  std::int32_t device = -7;
  return api.aclrtGetDevice(&device) == 0 ? device : -1;
}

}  // namespace

TEST_CASE("before aclInit a device cannot be set, and the text says what to call") {
  const acl::Table& api = HostSession::api();
  CHECK(api.aclrtSetDevice(0) == code::uninitialize);
  CHECK(HostSession::reason() == Reason::not_initialised);
  CHECK_THAT(HostSession::recent_text(), contains("aclInit"));
  std::int32_t device = 0;
  CHECK(api.aclrtGetDevice(&device) == code::uninitialize);
  acl::aclrtContext context = nullptr;
  CHECK(api.aclrtCreateContext(&context, 0) == code::uninitialize);
}

TEST_CASE("devices can be counted without aclInit") {
  std::uint32_t count = 0;
  CHECK(HostSession::api().aclrtGetDeviceCount(&count) == 0);
  CHECK(count == 2);
  CHECK(HostSession::api().aclrtGetDeviceCount(nullptr) == code::invalid_param);
}

TEST_CASE("a thread without a device is told so (R1)") {
  HostSession session;
  std::int32_t device = 0;
  CHECK(session->aclrtGetDevice(&device) == code::rt_context_null);
  CHECK(HostSession::reason() == Reason::no_context);
  CHECK(session->aclrtGetDevice(nullptr) == code::invalid_param);
  REQUIRE(session->aclrtSetDevice(1) == 0);
  CHECK(current(*session.operator->()) == 1);
  std::int32_t elsewhere = 0;
  std::thread([&] { elsewhere = current(*session.operator->()); }).join();
  CHECK(elsewhere == -1);
}

TEST_CASE("a device outside the machine is refused by its number") {
  HostSession session({{"DEVICES", "3"}});
  for (const std::int32_t bad : {-1, 3, 16, 1 << 20, INT32_MIN, INT32_MAX}) {
    CHECK(session->aclrtSetDevice(bad) == code::rt_invalid_deviceid);
    CHECK(HostSession::reason() == Reason::no_such_device);
    CHECK(host::last_cause().device == bad);
    CHECK(session->aclrtResetDevice(bad) == code::rt_invalid_deviceid);
    acl::aclrtContext context = nullptr;
    CHECK(session->aclrtCreateContext(&context, bad) == code::rt_invalid_deviceid);
  }
  CHECK(session->aclrtSetDevice(2) == 0);
}

TEST_CASE("one reset answers one set, and one too many is 507007 (R3)") {
  HostSession session;
  CHECK(session->aclrtResetDevice(0) == code::rt_context_release);
  REQUIRE(session->aclrtSetDevice(0) == 0);
  REQUIRE(session->aclrtSetDevice(0) == 0);
  CHECK(session->aclrtResetDevice(0) == 0);
  CHECK(session->aclrtResetDevice(0) == 0);
  CHECK(session->aclrtResetDevice(0) == code::rt_context_release);
  CHECK(session->aclrtResetDevice(1) == code::rt_context_release);
}

TEST_CASE("a forced reset does not count (R3)") {
  HostSession session;
  for (int times = 0; times < 3; ++times) REQUIRE(session->aclrtSetDevice(0) == 0);
  CHECK(session->aclrtResetDeviceForce(0) == 0);
  CHECK(current(*session.operator->()) == -1);
  CHECK(session->aclrtResetDevice(0) == code::rt_context_release);
  CHECK(session->aclrtResetDeviceForce(0) == code::rt_context_release);
}

TEST_CASE("a device stays for the other threads until its last reset, which ends it for all") {
  HostSession session;
  REQUIRE(session->aclrtSetDevice(0) == 0);
  std::thread([&] {
    CHECK(session->aclrtSetDevice(0) == 0);
    CHECK(session->aclrtResetDevice(0) == 0);
    CHECK(current(*session.operator->()) == -1);
  }).join();
  CHECK(current(*session.operator->()) == 0);
  std::thread([&] { CHECK(session->aclrtResetDevice(0) == 0); }).join();
  CHECK(current(*session.operator->()) == -1);
  REQUIRE(session->aclrtSetDevice(0) == 0);
  CHECK(current(*session.operator->()) == 0);
}

TEST_CASE("a context is made current by its creation and carries its device to other threads") {
  HostSession session;
  acl::aclrtContext first = nullptr;
  acl::aclrtContext second = nullptr;
  REQUIRE(session->aclrtCreateContext(&first, 0) == 0);
  REQUIRE(session->aclrtCreateContext(&second, 1) == 0);
  CHECK(first != second);
  CHECK(current(*session.operator->()) == 1);
  REQUIRE(session->aclrtSetCurrentContext(first) == 0);
  CHECK(current(*session.operator->()) == 0);
  acl::aclrtContext asked = nullptr;
  CHECK(session->aclrtGetCurrentContext(&asked) == 0);
  CHECK(asked == first);
  std::thread([&] {
    CHECK(session->aclrtSetCurrentContext(second) == 0);
    CHECK(current(*session.operator->()) == 1);
  }).join();
  CHECK(session->aclrtDestroyContext(first) == 0);
  CHECK(current(*session.operator->()) == -1);
  CHECK(session->aclrtGetCurrentContext(&asked) == code::rt_context_null);
  CHECK(session->aclrtDestroyContext(second) == 0);
}

TEST_CASE("a context that is gone, or that never was, is refused and never followed") {
  HostSession session;
  acl::aclrtContext gone = nullptr;
  REQUIRE(session->aclrtCreateContext(&gone, 0) == 0);
  REQUIRE(session->aclrtDestroyContext(gone) == 0);
  acl::aclrtContext next = nullptr;
  REQUIRE(session->aclrtCreateContext(&next, 0) == 0);
  CHECK(next != gone);
  int invented = 0;
  for (const acl::aclrtContext bad : {gone, acl::aclrtContext(&invented), acl::aclrtContext(std::uintptr_t{1}),
                                      acl::aclrtContext(UINTPTR_MAX), acl::aclrtContext(std::uintptr_t{0x2000})}) {
    CHECK(session->aclrtSetCurrentContext(bad) == code::rt_context_null);
    CHECK(session->aclrtDestroyContext(bad) == code::rt_context_null);
  }
  CHECK(session->aclrtSetCurrentContext(nullptr) == code::invalid_param);
  CHECK(session->aclrtDestroyContext(nullptr) == code::invalid_param);
  CHECK(session->aclrtCreateContext(nullptr, 0) == code::invalid_param);
  CHECK(session->aclrtGetCurrentContext(nullptr) == code::invalid_param);
}

TEST_CASE("the context that aclrtSetDevice makes cannot be destroyed, only reset") {
  HostSession session;
  REQUIRE(session->aclrtSetDevice(0) == 0);
  acl::aclrtContext primary = nullptr;
  REQUIRE(session->aclrtGetCurrentContext(&primary) == 0);
  CHECK(session->aclrtDestroyContext(primary) == code::rt_context_null);
  CHECK(current(*session.operator->()) == 0);
  REQUIRE(session->aclrtResetDevice(0) == 0);
  CHECK(session->aclrtSetCurrentContext(primary) == code::rt_context_null);
}

TEST_CASE("contexts run out with a refusal and come back when destroyed") {
  HostSession session;
  std::vector<acl::aclrtContext> made;
  acl::aclError refused = 0;
  while (refused == 0) {
    acl::aclrtContext context = nullptr;
    refused = session->aclrtCreateContext(&context, 0);
    if (refused == 0) made.push_back(context);
  }
  CHECK(refused == code::rt_resource_alloc_fail);
  CHECK(made.size() == 4096);
  REQUIRE(session->aclrtDestroyContext(made.front()) == 0);
  acl::aclrtContext again = nullptr;
  CHECK(session->aclrtCreateContext(&again, 1) == 0);
}

TEST_CASE("aclFinalize ends every device and context, and another session starts with none") {
  acl::aclrtContext context = nullptr;
  {
    HostSession session;
    REQUIRE(session->aclrtSetDevice(0) == 0);
    REQUIRE(session->aclrtCreateContext(&context, 1) == 0);
  }
  HostSession session;
  CHECK(current(*session.operator->()) == -1);
  CHECK(session->aclrtSetCurrentContext(context) == code::rt_context_null);
  CHECK(session->aclrtResetDevice(0) == code::rt_context_release);
}

TEST_CASE("visible devices are numbered anew, and the driver's number can be asked for") {
  HostSession session({{"DEVICES", "4"}, {"ASCEND_RT_VISIBLE_DEVICES", "1,3"}});
  std::uint32_t count = 0;
  REQUIRE(session->aclrtGetDeviceCount(&count) == 0);
  CHECK(count == 2);
  std::int32_t physical = -1;
  CHECK(session->aclrtGetLogicDevIdByUserDevId(0, &physical) == 0);
  CHECK(physical == 1);
  CHECK(session->aclrtGetLogicDevIdByUserDevId(1, &physical) == 0);
  CHECK(physical == 3);
  CHECK(session->aclrtGetLogicDevIdByUserDevId(2, &physical) == code::rt_invalid_deviceid);
  CHECK(session->aclrtGetLogicDevIdByUserDevId(0, nullptr) == code::invalid_param);
  CHECK(session->aclrtSetDevice(1) == 0);
  CHECK(current(*session.operator->()) == 1);
  CHECK(session->aclrtSetDevice(2) == code::rt_invalid_deviceid);
}

TEST_CASE("the visible list is read as the vendor reads it: to its first mistake, and not at all out of order") {
  struct Row {
    const char* list;
    std::uint32_t seen;
  };
  for (const Row& row : {Row{"0,1,2", 3}, Row{"1, 2", 1}, Row{"0,2,9,1", 2}, Row{"1,0", 0}, Row{"1,1", 0}, Row{"", 0},
                         Row{"x", 0}, Row{"0,,1", 1}, Row{"-1", 0}}) {
    INFO("ASCEND_RT_VISIBLE_DEVICES=" << row.list);
    HostSession session({{"DEVICES", "3"}, {"ASCEND_RT_VISIBLE_DEVICES", row.list}});
    std::uint32_t count = 99;
    CHECK(session->aclrtGetDeviceCount(&count) == 0);
    CHECK(count == row.seen);
    CHECK(session->aclrtSetDevice(0) == (row.seen > 0 ? 0 : code::rt_invalid_deviceid));
  }
}

TEST_CASE("device memory is reported free and total, by pool") {
  HostSession session({{"CAPACITY", "64M"}});
  std::size_t free = 1;
  std::size_t total = 1;
  CHECK(session->aclrtGetMemInfo(acl::mem_attr::hbm, nullptr, &total) == code::invalid_param);
  CHECK(session->aclrtGetMemInfo(acl::mem_attr::hbm, &free, nullptr) == code::invalid_param);
  CHECK(session->aclrtGetMemInfo(acl::mem_attr::hbm, &free, &total) == code::rt_context_null);
  REQUIRE(session->aclrtSetDevice(0) == 0);
  CHECK(session->aclrtGetMemInfo(99, &free, &total) == code::rt_param_invalid);
  REQUIRE(session->aclrtGetMemInfo(acl::mem_attr::hbm, &free, &total) == 0);
  CHECK(free == 64 << 20);
  CHECK(total == 64 << 20);
  REQUIRE(session->aclrtGetMemInfo(acl::mem_attr::ddr, &free, &total) == 0);
  CHECK(free == 0);
  CHECK(total == 0);
}

TEST_CASE("a 310P has one pool, which both names mean") {
  HostSession session({{"CAPACITY", "64M"}, {"PROFILE", "310p"}});
  REQUIRE(session->aclrtSetDevice(0) == 0);
  for (const acl::aclrtMemAttr attr : {acl::mem_attr::ddr, acl::mem_attr::hbm}) {
    std::size_t free = 0;
    std::size_t total = 0;
    REQUIRE(session->aclrtGetMemInfo(attr, &free, &total) == 0);
    CHECK(free == 64 << 20);
    CHECK(total == 64 << 20);
  }
}

TEST_CASE("allocations move the free memory of their own device, to the byte and back") {
  HostSession session({{"CAPACITY", "64M"}});
  const auto free_on = [&](std::int32_t device) {
    std::size_t free = 0;
    std::size_t total = 0;
    CHECK(session->aclrtSetDevice(device) == 0);
    CHECK(session->aclrtGetMemInfo(acl::mem_attr::hbm, &free, &total) == 0);
    return free;
  };
  CHECK(free_on(1) == 64 << 20);
  REQUIRE(session->aclrtSetDevice(0) == 0);
  void* memory = nullptr;
  REQUIRE(session->aclrtMalloc(&memory, 10 << 20, acl::malloc_policy::huge_first) == 0);
  const std::size_t used = host::bytes_in_use(0);
  CHECK(used >= 10 << 20);
  CHECK(used < 13 << 20);
  CHECK(free_on(0) == (64 << 20) - used);
  CHECK(free_on(1) == 64 << 20);
  void* too_much = nullptr;
  REQUIRE(session->aclrtSetDevice(0) == 0);
  CHECK(session->aclrtMalloc(&too_much, 60 << 20, acl::malloc_policy::huge_first) == code::rt_memory_allocation);
  CHECK(HostSession::reason() == Reason::capacity);
  CHECK(host::last_cause().available == (64 << 20) - used);
  REQUIRE(session->aclrtFree(memory) == 0);
  CHECK(host::bytes_in_use(0) == 0);
}

TEST_CASE("a forked child has no device until it initialises for itself (R4)") {
  const ChildEnd end = in_child([] {
    HostSession session;
    demand(session->aclrtSetDevice(0) == 0, "the parent has a device");
    acl::aclrtContext context = nullptr;
    demand(session->aclrtGetCurrentContext(&context) == 0, "and a context");
    const pid_t child = ::fork();
    if (child == 0) {
      const acl::Table& api = HostSession::api();
      std::int32_t device = 0;
      demand(api.aclrtGetDevice(&device) == code::rt_context_null, "the child has none");
      demand(api.aclInit(nullptr) == 0, "it can start a runtime of its own");
      demand(api.aclrtGetDevice(&device) == code::rt_context_null, "which has no device yet");
      demand(api.aclrtSetCurrentContext(context) == code::rt_context_null, "and knows no context of the parent's");
      demand(api.aclrtSetDevice(1) == 0 && api.aclrtGetDevice(&device) == 0 && device == 1, "only its own");
      ::_exit(0);
    }
    int status = 0;
    demand(::waitpid(child, &status, 0) == child && status == 0, "the child is content");
    std::int32_t device = 1;
    demand(session->aclrtGetDevice(&device) == 0 && device == 0, "the parent keeps its device");
  });
  INFO(end.in_words());
  CHECK(end.good());
}

TEST_CASE("threads that set, reset and create at once leave counts that pair up") {
  HostSession session;
  std::vector<std::thread> threads;
  for (int number = 0; number < 4; ++number) {
    threads.emplace_back([&session, number] {
      for (int round = 0; round < 500; ++round) {
        const std::int32_t device = (number + round) % 2;
        acl::aclrtContext context = nullptr;
        if (session->aclrtSetDevice(device) != 0) std::abort();
        if (session->aclrtCreateContext(&context, 1 - device) != 0) std::abort();
        std::int32_t now = -1;
        if (session->aclrtGetDevice(&now) != 0 || now != 1 - device) std::abort();
        if (session->aclrtDestroyContext(context) != 0) std::abort();
        if (session->aclrtResetDevice(device) != 0) std::abort();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(session->aclrtResetDevice(0) == code::rt_context_release);
  CHECK(session->aclrtResetDevice(1) == code::rt_context_release);
}
