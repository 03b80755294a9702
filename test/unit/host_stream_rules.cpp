// SPDX-License-Identifier: Apache-2.0
// What calls on streams refuse, with their codes, and what becomes of errors of tasks.
#include "stream_session.hpp"
#include "support/soon.hpp"
#include "support/watchdog.hpp"

#include <chrono>
#include <cstdint>
#include <string>
#include <thread>

using namespace devshare::test;
using devshare::host::Reason;
namespace acl = devshare::acl;
namespace code = devshare::acl::code;
namespace host = devshare::host;
namespace kind = devshare::acl::memcpy_kind;

namespace {

constexpr std::size_t size = 64 << 10;

constexpr Refusal unknown{code::rt_invalid_handle, Reason::unknown_stream};
constexpr Refusal elsewhere{code::rt_stream_context, Reason::other_device};
constexpr Refusal no_context{code::rt_context_null, Reason::no_context};
constexpr Refusal busy{code::rt_drv_internal, Reason::in_use};

}  // namespace

TEST_CASE("streams are made with a priority of 0 to 7 and flags that exist") {
  StreamSession session;
  const auto& rt = session.acl;
  acl::aclrtStream stream = nullptr;
  CHECK(refused(rt.aclrtCreateStream(nullptr)) == null);
  CHECK(refused(rt.aclrtCreateStreamWithConfig(nullptr, 0, 0)) == null);
  CHECK(refused(rt.aclrtCreateStreamWithConfig(&stream, 8, 0)) == bad);
  CHECK(refused(rt.aclrtCreateStreamWithConfig(&stream, 0, 0x80)) == bad);
  for (std::uint32_t priority = 0; priority <= acl::lowest_stream_priority; ++priority) {
    REQUIRE(rt.aclrtCreateStreamWithConfig(&stream, priority, acl::stream_flag::fast_launch) == 0);
    CHECK(rt.aclrtSynchronizeStream(stream) == 0);  // with nothing in it
    CHECK(rt.aclrtDestroyStream(stream) == 0);
  }
  std::thread([&] { CHECK(refused(rt.aclrtCreateStream(&stream)) == no_context); }).join();
}

TEST_CASE("a process has 2,048 streams, 1,024 on older products, and the next is refused with the number") {
  const auto [product, most] = GENERATE(std::pair("a2", 2048), std::pair("310p", 1024));
  REQUIRE(host::set("PROFILE", product));
  {
    StreamSession session;
    std::vector<acl::aclrtStream> streams(static_cast<std::size_t>(most));
    for (acl::aclrtStream& stream : streams) REQUIRE(session.acl.aclrtCreateStream(&stream) == 0);
    acl::aclrtStream another = nullptr;
    CHECK(refused(session.acl.aclrtCreateStream(&another)) ==
          Refusal{code::rt_no_stream_resource, Reason::resource_limit});
    CHECK(host::last_cause().available == static_cast<std::uint64_t>(most));
    REQUIRE(session.acl.aclrtDestroyStream(streams.front()) == 0);
    CHECK(session.acl.aclrtCreateStream(&another) == 0);
    CHECK(another != streams.front());  // a number is never used again
  }
  host::unset_all();
}

TEST_CASE("a stream that is none, or is none any more, is refused and never followed") {
  StreamSession session;
  const auto& rt = session.acl;
  void* const memory = session.allocate(size);
  acl::aclrtStream ended = session.stream();
  REQUIRE(rt.aclrtDestroyStream(ended) == 0);
  int object = 0;
  acl::aclrtStreamStatus status = -1;
  for (const acl::aclrtStream stream :
       {ended, static_cast<acl::aclrtStream>(&object), static_cast<acl::aclrtStream>(memory),
        reinterpret_cast<acl::aclrtStream>(std::uintptr_t{1})}) {
    CHECK(refused(rt.aclrtSynchronizeStream(stream)) == unknown);
    CHECK(refused(rt.aclrtSynchronizeStreamWithTimeout(stream, 1)) == unknown);
    CHECK(refused(rt.aclrtStreamQuery(stream, &status)) == unknown);
    CHECK(refused(rt.aclrtDestroyStream(stream)) == unknown);
    CHECK(refused(rt.aclrtDestroyStreamForce(stream)) == unknown);
    CHECK(refused(rt.aclrtMemsetAsync(memory, 1, 1, 1, stream)) == unknown);
    CHECK(refused(rt.aclrtMemcpyAsync(memory, 1, memory, 1, kind::device_to_device, stream)) == unknown);
  }
  CHECK(refused(rt.aclrtDestroyStream(nullptr)) == null);
  CHECK(refused(rt.aclrtDestroyStreamForce(nullptr)) == null);
  CHECK(refused(rt.aclrtStreamQuery(nullptr, nullptr)) == null);
  CHECK(refused(rt.aclrtSynchronizeStreamWithTimeout(nullptr, -2)) == bad);
  CHECK(status == -1);
  CHECK(rt.aclrtFree(memory) == 0);  // nothing was enqueued
}

TEST_CASE("a stream of another device than the current one is refused, also without a current one") {
  StreamSession session;
  const auto& rt = session.acl;
  void* const memory = session.allocate(size);
  const acl::aclrtStream stream = session.stream();
  acl::aclrtStreamStatus status = -1;
  REQUIRE(rt.aclrtSetDevice(1) == 0);
  CHECK(refused(rt.aclrtSynchronizeStream(stream)) == elsewhere);
  CHECK(host::last_cause().device == 1);
  CHECK(host::last_cause().peer_device == 0);
  CHECK(refused(rt.aclrtStreamQuery(stream, &status)) == elsewhere);
  CHECK(refused(rt.aclrtMemsetAsync(memory, 1, 1, 1, stream)) == elsewhere);
  CHECK(refused(rt.aclrtDestroyStream(stream)) == elsewhere);
  std::thread([&] {
    CHECK(refused(rt.aclrtSynchronizeStream(stream)) == no_context);
    CHECK(refused(rt.aclrtSynchronizeDevice()) == no_context);
    CHECK(refused(rt.aclrtMemsetAsync(memory, 1, 1, 1, stream)) == no_context);
  }).join();
  REQUIRE(rt.aclrtSetDevice(0) == 0);
  CHECK(rt.aclrtDestroyStream(stream) == 0);
}

TEST_CASE("asynchronous copies look at their arguments when they are called") {
  StreamSession session;
  const auto& rt = session.acl;
  void* const memory = session.allocate(size);
  const LockedBytes bytes(size);
  const acl::aclrtStream stream = session.stream();
  const auto copy = [&](void* to, std::size_t room, const void* from, std::size_t count, int direction) {
    return refused(rt.aclrtMemcpyAsync(to, room, from, count, direction, stream));
  };
  CHECK(rt.aclrtMemcpyAsync(nullptr, 0, nullptr, 0, 99, nullptr) == 0);  // nothing: not looked at
  CHECK(copy(nullptr, 1, bytes.data(), 1, kind::host_to_device) == null);
  CHECK(copy(memory, 1, nullptr, 1, kind::host_to_device) == null);
  CHECK(copy(memory, 1, bytes.data(), 1, -1) == null);
  CHECK(copy(memory, 1, bytes.data(), 1, 8) == null);
  CHECK(copy(memory, 1, bytes.data(), 2, kind::host_to_device) ==
        Refusal{code::rt_param_invalid, Reason::out_of_bounds});
  CHECK(copy(memory, size + 1, bytes.data(), size + 1, kind::host_to_device) ==
        Refusal{code::rt_drv_internal, Reason::out_of_bounds});
  CHECK(copy(bytes.data(), size, bytes.data() + 1, 1, kind::host_to_host) ==
        Refusal{code::rt_feature_not_support, Reason::unsupported});
  CHECK(refused(rt.aclrtMemsetAsync(nullptr, 1, 1, 1, stream)) == null);
  CHECK(refused(rt.aclrtMemsetAsync(memory, 1, 1, 2, stream)) ==
        Refusal{code::rt_param_invalid, Reason::out_of_bounds});
  CHECK(refused(rt.aclrtMemsetAsync(memory, 2 * size, 1, 2 * size, stream)) ==
        Refusal{code::rt_drv_internal, Reason::out_of_bounds});
  CHECK(rt.aclrtMemsetAsync(memory, 0, 1, 0, stream) == 0);
  for (const int direction : {kind::inner_device_to_device, kind::device_to_device, kind::automatic}) {
    CHECK(rt.aclrtMemcpyAsync(memory, 16, static_cast<char*>(memory) + 16, 16, direction, stream) == 0);
  }
  CHECK(rt.aclrtSynchronizeStream(stream) == 0);
  REQUIRE(rt.aclrtFree(memory) == 0);
  CHECK(copy(memory, 1, bytes.data(), 1, kind::host_to_device) ==
        Refusal{code::rt_drv_internal, Reason::not_device_memory});
}

TEST_CASE("two devices: a copy in a stream needs peer access, as a blocking one does") {
  StreamSession session;
  const auto& rt = session.acl;
  void* const here = session.allocate(size);
  REQUIRE(rt.aclrtSetDevice(1) == 0);
  void* const there = session.allocate(size);
  const acl::aclrtStream stream = session.stream();
  const auto copy = [&] { return rt.aclrtMemcpyAsync(there, size, here, size, kind::inter_device_to_device, stream); };
  CHECK(refused(copy()) == Refusal{code::rt_drv_internal, Reason::peer_access_missing});
  REQUIRE(rt.aclrtDeviceEnablePeerAccess(0, 0) == 0);
  REQUIRE(rt.aclrtSetDevice(0) == 0);
  REQUIRE(rt.aclrtDeviceEnablePeerAccess(1, 0) == 0);
  REQUIRE(rt.aclrtSetDevice(1) == 0);
  CHECK(copy() == 0);
  CHECK(rt.aclrtSynchronizeStream(stream) == 0);
}

TEST_CASE("an error of a task surfaces at synchronise, once, and the tasks behind it are carried out") {
  const Watchdog watchdog("a failing task");
  StreamSession session;
  const auto& rt = session.acl;
  void* const memory = session.allocate(size);
  const acl::aclrtStream stream = session.stream();
  const acl::aclrtStream other = session.stream();
  const LockedBytes bytes(size, 'f');
  const LockedBytes read(size);
  host::fail_task(acl::Entry::aclrtMemcpyAsync, 1, code::rt_sys_dma);
  REQUIRE(session.to_device(memory, bytes, stream) == 0);
  REQUIRE(rt.aclrtMemsetAsync(memory, size, 'g', size, stream) == 0);
  REQUIRE(session.to_host(read, memory, stream) == 0);
  CHECK(rt.aclrtSynchronizeStream(other) == 0);  // another stream knows nothing of it
  CHECK(refused(rt.aclrtSynchronizeStream(stream)) == Refusal{code::rt_sys_dma, Reason::injected});
  const std::string text = session.message();
  CHECK(text.find("aclrtSynchronizeStream") == 0);
  CHECK(text.find("aclrtMemcpyAsync") != std::string::npos);
  CHECK(read.all('g'));
  CHECK(rt.aclrtSynchronizeStream(stream) == 0);

  // Of several, the first; and whoever synchronises the device is told of the earliest.
  host::fail_task(acl::Entry::aclrtMemcpyAsync, 1, code::rt_sys_dma);
  host::fail_task(acl::Entry::aclrtMemcpyAsync, 2, code::rt_copy_data);
  host::fail_task(acl::Entry::aclrtMemsetAsync, 1, code::rt_device_mem);
  REQUIRE(session.to_device(memory, bytes, stream) == 0);
  REQUIRE(session.to_device(memory, bytes, stream) == 0);
  REQUIRE(soon([&] { return session.complete(stream); }));
  REQUIRE(rt.aclrtMemsetAsync(memory, size, 1, size, other) == 0);
  CHECK(rt.aclrtSynchronizeDevice() == code::rt_sys_dma);
  CHECK(rt.aclrtSynchronizeStreamWithTimeout(other, -1) == code::rt_device_mem);
  CHECK(rt.aclrtSynchronizeDevice() == 0);
}

TEST_CASE("an error may stay with its stream until that ends, where a test asks for it") {
  REQUIRE(host::set("TASK_ERRORS", "stay"));
  {
    StreamSession session;
    const auto& rt = session.acl;
    void* const memory = session.allocate(size);
    const acl::aclrtStream stream = session.stream();
    host::fail_task(acl::Entry::aclrtMemsetAsync, 1, code::rt_sys_dma);
    REQUIRE(rt.aclrtMemsetAsync(memory, size, 1, size, stream) == 0);
    for (int i = 0; i < 3; ++i) CHECK(rt.aclrtSynchronizeStream(stream) == code::rt_sys_dma);
    CHECK(rt.aclrtSynchronizeDevice() == code::rt_sys_dma);
    CHECK(rt.aclrtSynchronizeStream(nullptr) == 0);
    void* imported = nullptr;
    CHECK(refused(rt.aclrtIpcMemImportByKey(&imported, "", 0)) ==
          Refusal{code::rt_drv_internal, Reason::earlier_task_failed});
    CHECK(rt.aclrtDestroyStream(stream) == 0);
    CHECK(rt.aclrtSynchronizeDevice() == 0);
    CHECK(refused(rt.aclrtIpcMemImportByKey(&imported, "", 0)) == Refusal{code::rt_drv_internal, Reason::unknown_key});
  }
  host::unset_all();
}

TEST_CASE("a synchronise with a limit says that the work is not done, and how much of it") {
  const Watchdog watchdog("a limit");
  StreamSession session;
  const auto& rt = session.acl;
  const acl::aclrtStream stream = session.stream();
  void* const memory = session.allocate(size);
  Gate gate;
  gate.hold_up(stream);
  REQUIRE(rt.aclrtMemsetAsync(memory, size, 1, size, stream) == 0);
  constexpr Refusal late{code::rt_stream_sync_timeout, Reason::timed_out};
  CHECK(refused(rt.aclrtSynchronizeStreamWithTimeout(stream, 0)) == late);
  CHECK(host::last_cause().needed == 2);
  const auto before = std::chrono::steady_clock::now();
  CHECK(refused(rt.aclrtSynchronizeStreamWithTimeout(stream, 100)) == late);  // 100 s would be the watchdog's
  CHECK(std::chrono::steady_clock::now() - before >= std::chrono::milliseconds(100));
  gate.open();
  CHECK(rt.aclrtSynchronizeStreamWithTimeout(stream, 60'000) == 0);
  CHECK(rt.aclrtSynchronizeStreamWithTimeout(stream, 0) == 0);
  CHECK(rt.aclrtSynchronizeStreamWithTimeout(nullptr, 0) == 0);
}

TEST_CASE("R5: memory that a stream still uses is neither freed nor unmapped") {
  const Watchdog watchdog("memory in a stream");
  StreamSession session;
  const auto& rt = session.acl;
  const acl::aclrtStream stream = session.stream();
  const LockedBytes bytes(size, 'u');
  void* const memory = session.allocate(size);
  acl::aclrtPhysicalMemProp property{};
  property.memAttr = acl::mem_attr::hbm_huge;
  property.location = {0, acl::mem_location_type::device};
  constexpr std::size_t whole = 2 << 20;
  acl::aclrtDrvMemHandle handle = nullptr;
  void* range = nullptr;
  REQUIRE(rt.aclrtMallocPhysical(&handle, whole, &property, 0) == 0);
  REQUIRE(rt.aclrtReserveMemAddress(&range, whole, 0, nullptr, 0) == 0);
  REQUIRE(rt.aclrtMapMem(range, whole, 0, handle, 0) == 0);

  Gate gate;
  gate.hold_up(stream);
  REQUIRE(session.to_device(memory, bytes, stream) == 0);
  REQUIRE(rt.aclrtMemcpyAsync(range, size, memory, size, kind::device_to_device, stream) == 0);
  CHECK(refused(rt.aclrtFree(memory)) == busy);
  CHECK(refused(rt.aclrtUnmapMem(range)) == busy);
  gate.open();
  CHECK(rt.aclrtSynchronizeStream(stream) == 0);
  unsigned char last = 0;
  CHECK(rt.aclrtMemcpy(&last, 1, static_cast<char*>(range) + size - 1, 1, kind::device_to_host) == 0);
  CHECK(last == 'u');
  CHECK(rt.aclrtUnmapMem(range) == 0);
  CHECK(rt.aclrtReleaseMemAddress(range) == 0);
  CHECK(rt.aclrtFreePhysical(handle) == 0);
  CHECK(rt.aclrtFree(memory) == 0);

  // aclrtFreeWithDevSync waits for what is queued, and does not swallow its errors.
  void* const another = session.allocate(size);
  host::delay_task(acl::Entry::aclrtMemcpyAsync, 50);
  host::fail_task(acl::Entry::aclrtMemcpyAsync, 1, code::rt_sys_dma);
  REQUIRE(session.to_device(another, bytes, stream) == 0);
  CHECK(refused(rt.aclrtFree(another)) == busy);
  CHECK(rt.aclrtFreeWithDevSync(another) == 0);
  CHECK(rt.aclrtSynchronizeStream(stream) == code::rt_sys_dma);
}

TEST_CASE("a stream waits for a value by one of four comparisons, and goes on when it holds") {
  const Watchdog watchdog("a value");
  struct Compared {
    std::uint64_t memory;
    std::uint64_t value;
    std::uint32_t flag;
    bool holds;
  };
  namespace wait = acl::value_wait;
  const Compared compared = GENERATE(values<Compared>({
      {5, 5, wait::equal, true},
      {5, 4, wait::equal, false},
      {5, 5, wait::at_least, true},
      {5, 6, wait::at_least, false},
      {2, UINT64_MAX - 2, wait::at_least, true},  // it has gone round
      {UINT64_MAX - 2, 2, wait::at_least, false},
      {5, 6, wait::common_bits, true},
      {5, 2, wait::common_bits, false},
      {5, 6, wait::nor, true},
      {5, ~std::uint64_t{5}, wait::nor, false},
  }));
  CAPTURE(compared.memory, compared.value, compared.flag);
  StreamSession session;
  const auto& rt = session.acl;
  void* const memory = session.allocate(size);
  const acl::aclrtStream stream = session.stream();
  REQUIRE(rt.aclrtValueWrite(memory, compared.memory, 0, nullptr) == 0);
  CHECK(rt.aclrtSynchronizeStream(nullptr) == 0);
  REQUIRE(rt.aclrtValueWait(memory, compared.value, compared.flag, stream) == 0);
  if (compared.holds) {
    CHECK(rt.aclrtSynchronizeStreamWithTimeout(stream, 20'000) == 0);
  } else {
    CHECK(rt.aclrtSynchronizeStreamWithTimeout(stream, 10) == code::rt_stream_sync_timeout);
  }
  CHECK(rt.aclrtDestroyStreamForce(stream) == 0);
}

TEST_CASE("a function is launched into a stream that is there, by a thread that has its device") {
  StreamSession session;
  devshare::detail::Cause why;
  const auto nothing = [](void*) {};
  CHECK(host::launch(nullptr, nullptr, nullptr, &why) == code::invalid_param);
  CHECK(why.reason == Reason::bad_argument);
  CHECK(host::launch(reinterpret_cast<acl::aclrtStream>(std::uintptr_t{77}), nothing, nullptr, &why) ==
        code::rt_invalid_handle);
  CHECK(why.reason == Reason::unknown_stream);
  std::thread([&] {
    CHECK(host::launch(nullptr, nothing, nullptr, &why) == code::rt_context_null);
    CHECK(why.reason == Reason::no_context);
  }).join();
  bool ran = false;
  CHECK(host::launch(
            nullptr, [](void* flag) { *static_cast<bool*>(flag) = true; }, &ran) == 0);
  CHECK(session.acl.aclrtSynchronizeStream(nullptr) == 0);
  CHECK(ran);
}

TEST_CASE("faults and delays of tasks can be asked for by the environment's switches") {
  REQUIRE(host::set("TASK_FAULT", "aclrtMemsetAsync:2:507013"));
  REQUIRE(host::set("TASK_DELAY", "aclrtMemsetAsync:1"));
  {
    StreamSession session;
    void* const memory = session.allocate(size);
    REQUIRE(session.acl.aclrtMemsetAsync(memory, 1, 1, 1, nullptr) == 0);
    CHECK(session.acl.aclrtSynchronizeStream(nullptr) == 0);
    REQUIRE(session.acl.aclrtMemsetAsync(memory, 1, 1, 1, nullptr) == 0);
    CHECK(session.acl.aclrtSynchronizeStream(nullptr) == code::rt_sys_dma);
    REQUIRE(session.acl.aclrtMemsetAsync(memory, 1, 1, 1, nullptr) == 0);
    CHECK(session.acl.aclrtSynchronizeStream(nullptr) == 0);
  }
  host::unset_all();
}
