// SPDX-License-Identifier: Apache-2.0
// How streams end: destroyed, with their context or device, with the runtime, and in a forked child.
#include "stream_session.hpp"
#include "support/child.hpp"
#include "support/sanitizers.hpp"
#include "support/soon.hpp"
#include "support/watchdog.hpp"

#include <atomic>
#include <thread>
#include <vector>

using namespace devshare::test;
using devshare::host::Reason;
namespace acl = devshare::acl;
namespace code = devshare::acl::code;
namespace host = devshare::host;

namespace {

constexpr std::size_t size = 64 << 10;

// Threads of the parent had memory when it forked.
ChildOptions without_leaks() {
  ChildOptions options;
  options.leaks = false;
  return options;
}

}  // namespace

TEST_CASE("destroying a stream waits for what is in it") {
  const Watchdog watchdog("a destroyed stream");
  StreamSession session;
  const acl::aclrtStream stream = session.stream();
  std::atomic<bool> ran{false};
  Gate gate;
  gate.hold_up(stream);
  REQUIRE(host::launch(stream, set_flag, &ran) == 0);
  std::thread opener([&] {
    gate.await_reached();
    gate.open();
  });
  CHECK(session.acl.aclrtDestroyStream(stream) == 0);
  CHECK(ran);
  opener.join();
  CHECK(host::counters().streams == 0);
}

TEST_CASE("destroying a stream by force drops what has not begun, and gives its memory free") {
  const Watchdog watchdog("a stream destroyed by force");
  StreamSession session;
  const acl::aclrtStream stream = session.stream();
  void* const memory = session.allocate(size);
  std::atomic<bool> ran{false};
  Gate gate;
  gate.hold_up(stream);
  REQUIRE(host::launch(stream, set_flag, &ran) == 0);
  REQUIRE(session.acl.aclrtMemsetAsync(memory, size, 'x', size, stream) == 0);
  gate.await_reached();
  std::atomic<bool> waited{false};
  // Another thread, whose copy of pageable memory waits for its turn, is told that it will not come.
  acl::aclError dropped = 0;
  std::thread waiter([&] {
    std::vector<unsigned char> pageable(size);
    if (session.acl.aclrtSetDevice(0) != 0) return;
    waited = true;
    dropped =
        session.acl.aclrtMemcpyAsync(pageable.data(), size, memory, size, acl::memcpy_kind::device_to_host, stream);
  });
  REQUIRE(soon([&] { return waited.load(); }));
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  std::thread opener([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    gate.open();
  });
  CHECK(session.acl.aclrtDestroyStreamForce(stream) == 0);
  opener.join();
  waiter.join();
  CHECK_FALSE(ran);
  CHECK((dropped == code::uninitialize || dropped == code::rt_invalid_handle));  // enqueued before, or after
  CHECK(session.acl.aclrtFree(memory) == 0);
}

TEST_CASE("resetting a device waits for its streams and ends them") {
  const Watchdog watchdog("a reset device");
  StreamSession session;
  void* const memory = session.allocate(size);
  const acl::aclrtStream stream = session.stream();
  std::atomic<bool> ran{false};
  std::atomic<bool> ran_on_default{false};
  host::delay_task(acl::Entry::aclrtMemsetAsync, 30);
  REQUIRE(session.acl.aclrtMemsetAsync(memory, size, 1, size, stream) == 0);
  REQUIRE(host::launch(stream, set_flag, &ran) == 0);
  REQUIRE(session.acl.aclrtMemsetAsync(memory, size, 1, size, nullptr) == 0);
  REQUIRE(host::launch(nullptr, set_flag, &ran_on_default) == 0);
  SECTION("by the last of its resets") {
    REQUIRE(session.acl.aclrtSetDevice(0) == 0);
    CHECK(session.acl.aclrtResetDevice(0) == 0);
    REQUIRE(session.acl.aclrtSetDevice(0) == 0);
    CHECK(session.acl.aclrtSynchronizeStreamWithTimeout(stream, 60'000) == 0);  // it was not the last
    CHECK(session.acl.aclrtResetDevice(0) == 0);
    CHECK(session.acl.aclrtResetDevice(0) == 0);
  }
  SECTION("by force") {
    REQUIRE(session.acl.aclrtSetDevice(0) == 0);
    CHECK(session.acl.aclrtResetDeviceForce(0) == 0);
  }
  CHECK(ran);
  CHECK(ran_on_default);
  CHECK(host::counters().streams == 0);
  REQUIRE(session.acl.aclrtSetDevice(0) == 0);
  CHECK(session.acl.aclrtSynchronizeStream(stream) == code::rt_invalid_handle);
  CHECK(session.acl.aclrtFree(memory) == 0);
}

TEST_CASE("a context ends with its streams, those of another context of the device go on") {
  const Watchdog watchdog("a destroyed context");
  StreamSession session;
  const acl::aclrtStream first = session.stream();
  acl::aclrtContext context = nullptr;
  acl::aclrtContext own = nullptr;
  REQUIRE(session.acl.aclrtGetCurrentContext(&own) == 0);
  REQUIRE(session.acl.aclrtCreateContext(&context, 0) == 0);
  const acl::aclrtStream second = session.stream();
  std::atomic<bool> ran{false};
  REQUIRE(host::launch(second, set_flag, &ran) == 0);
  REQUIRE(session.acl.aclrtSetCurrentContext(own) == 0);
  CHECK(session.acl.aclrtSynchronizeStream(second) == 0);  // same device
  CHECK(session.acl.aclrtDestroyContext(context) == 0);
  CHECK(ran);
  CHECK(session.acl.aclrtSynchronizeStream(second) == code::rt_invalid_handle);
  CHECK(session.acl.aclrtSynchronizeStream(first) == 0);
}

TEST_CASE("aclFinalize waits for what is in streams, and the next session begins without any") {
  const Watchdog watchdog("aclFinalize");
  std::atomic<bool> ran{false};
  acl::aclrtStream stream = nullptr;
  {
    StreamSession session;
    stream = session.stream();
    void* const memory = session.allocate(size);
    host::delay_task(acl::Entry::aclrtMemsetAsync, 30);
    REQUIRE(session.acl.aclrtMemsetAsync(memory, size, 1, size, stream) == 0);
    REQUIRE(host::launch(stream, set_flag, &ran) == 0);
  }
  CHECK(ran);
  StreamSession session;
  CHECK(host::counters().streams == 0);
  CHECK(session.acl.aclrtSynchronizeStream(stream) == code::rt_invalid_handle);
  ran = false;
  REQUIRE(host::launch(session.stream(), set_flag, &ran) == 0);
  CHECK(session.acl.aclrtSynchronizeDevice() == 0);
  CHECK(ran);
}

TEST_CASE("a function in a stream may make calls, also while aclFinalize waits for it") {
  const Watchdog watchdog("calls in a function");
  struct Work {
    const acl::Table& rt;
    acl::aclError code = -1;
  };
  const auto work = [](void* argument) {
    Work& mine = *static_cast<Work*>(argument);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    std::int32_t device = -1;
    mine.code = mine.rt.aclrtGetDevice(&device);  // that of the launch
    if (mine.code == 0 && device != 0) mine.code = -1;
    if (mine.code == 0) mine.code = mine.rt.aclrtSetDevice(1);
    void* memory = nullptr;
    if (mine.code == 0) mine.code = mine.rt.aclrtMalloc(&memory, size, 0);
    if (mine.code == 0) mine.code = mine.rt.aclrtFree(memory);
  };
  Work mine{host::table()};
  {
    StreamSession session;
    const acl::aclrtStream stream = session.stream();
    REQUIRE(host::launch(stream, work, &mine) == 0);
    REQUIRE(host::launch(stream, work, &mine) == 0);  // which does not meet what the first made current
  }
  CHECK(mine.code == 0);
}

TEST_CASE("R4: a forked child has no streams of its parent, and may have its own; the parent's go on") {
  if (sees_races()) DEVSHARE_SKIP("ThreadSanitizer does not follow threads that a child of several starts");
  const Watchdog watchdog("a fork");
  StreamSession session;
  const acl::aclrtStream stream = session.stream();
  void* const memory = session.allocate(size);
  const LockedBytes bytes(size, 'p');
  const LockedBytes read(size);
  Gate gate;
  gate.hold_up(stream);
  REQUIRE(session.to_device(memory, bytes, stream) == 0);
  gate.await_reached();
  acl::aclrtEvent event = nullptr;
  acl::aclrtNotify notify = nullptr;
  REQUIRE(session.acl.aclrtCreateEvent(&event) == 0);
  REQUIRE(session.acl.aclrtCreateNotify(&notify, 0) == 0);
  REQUIRE(session.acl.aclrtWaitAndResetNotify(notify, nullptr, 3600) == 0);  // parked over the fork
  const auto end = in_child(
      [&] {
        const auto& rt = session.acl;
        acl::aclrtStream made = nullptr;
        acl::aclrtStreamStatus status = -1;
        const auto refused = [](acl::aclError code) {
          return code == code::rt_context_null && last_reason() == Reason::forked;
        };
        demand(refused(rt.aclrtCreateStream(&made)), "aclrtCreateStream");
        demand(refused(rt.aclrtSynchronizeStream(stream)), "aclrtSynchronizeStream");
        demand(refused(rt.aclrtSynchronizeDevice()), "aclrtSynchronizeDevice");
        demand(refused(rt.aclrtStreamQuery(stream, &status)), "aclrtStreamQuery");
        demand(refused(rt.aclrtDestroyStreamForce(stream)), "aclrtDestroyStreamForce");
        demand(refused(rt.aclrtMemsetAsync(memory, 1, 1, 1, stream)), "aclrtMemsetAsync");
        demand(host::launch(
                   stream, [](void*) {}, nullptr) == code::rt_context_null,
               "host::launch");
        void* other = nullptr;
        char key[acl::ipc_key_size] = {};
        acl::aclrtIpcEventHandle handle{};
        demand(refused(rt.aclrtCreateEvent(&other)), "aclrtCreateEvent");
        demand(refused(rt.aclrtRecordEvent(event, stream)), "aclrtRecordEvent");
        demand(refused(rt.aclrtStreamWaitEvent(stream, event)), "aclrtStreamWaitEvent");
        demand(refused(rt.aclrtSynchronizeEvent(event)), "aclrtSynchronizeEvent");
        demand(refused(rt.aclrtIpcGetEventHandle(event, &handle)), "aclrtIpcGetEventHandle");
        demand(refused(rt.aclrtIpcOpenEventHandle(handle, &other)), "aclrtIpcOpenEventHandle");
        demand(refused(rt.aclrtRecordNotify(notify, stream)), "aclrtRecordNotify");
        demand(refused(rt.aclrtWaitAndResetNotify(notify, stream, 0)), "aclrtWaitAndResetNotify");
        demand(refused(rt.aclrtNotifyImportByKey(&other, key, 0)), "aclrtNotifyImportByKey");
        demand(refused(rt.aclrtValueWrite(memory, 1, 0, stream)), "aclrtValueWrite");
        demand(refused(rt.aclrtValueWait(memory, 1, 0, stream)), "aclrtValueWait");
        demand(host::counters().events == 0 && host::counters().notifies == 0, "none of the parent's is counted");
        demand(host::counters().streams == 0, "no streams are counted");
        demand(threads_of_process() == 1, "and no worker");
        demand(rt.aclInit(nullptr) == 0 && rt.aclrtSetDevice(0) == 0, "a runtime of its own");
        demand(rt.aclrtSynchronizeStream(stream) == code::rt_invalid_handle, "the parent's stream is none of it");
        demand(rt.aclrtSynchronizeEvent(event) == code::rt_invalid_handle, "nor its event");
        demand(rt.aclrtDestroyNotify(notify) == code::rt_invalid_handle, "nor its notify");
        demand(rt.aclrtCreateStream(&made) == 0, "a stream of its own");
        std::atomic<bool> ran{false};
        demand(host::launch(made, set_flag, &ran) == 0 && rt.aclrtSynchronizeStream(made) == 0, "which works");
        demand(ran, "and did its work");
        demand(rt.aclFinalize() == 0, "aclFinalize");
        demand(threads_of_process() == 1, "no worker is left");
      },
      without_leaks());
  INFO(end.in_words());
  CHECK(end.good());
  gate.open();
  REQUIRE(session.to_host(read, memory, stream) == 0);
  CHECK(session.acl.aclrtSynchronizeStream(stream) == 0);
  CHECK(read.all('p'));
  REQUIRE(session.acl.aclrtRecordNotify(notify, stream) == 0);
  CHECK(session.acl.aclrtSynchronizeStream(nullptr) == 0);
}

TEST_CASE("a process that ends with work in its streams ends at once") {
  const auto end = in_child(
      [] {
        StreamSession& session = *new StreamSession;  // never finalized
        const acl::aclrtStream stream = session.stream();
        Gate& gate = *new Gate;
        gate.hold_up(stream);
        void* const memory = session.allocate(size);
        demand(session.acl.aclrtMemsetAsync(memory, size, 1, size, stream) == 0, "enqueued");
        gate.await_reached();
      },
      without_leaks());
  INFO(end.in_words());
  CHECK(end.good());
}

TEST_CASE("aclFinalize comes to its end although threads go on enqueuing") {
  const Watchdog watchdog("aclFinalize beside threads that enqueue");
  StreamSession session;
  std::atomic<int> refused{0};
  std::atomic<int> enqueuing{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&, memory = session.allocate(size), stream = session.stream()] {
      session.acl.aclrtSetDevice(0);
      ++enqueuing;
      while (session.acl.aclrtMemsetAsync(memory, size, 'e', size, stream) == 0) {
      }
      ++refused;
    });
  }
  while (enqueuing != 4) std::this_thread::yield();
  CHECK(session.acl.aclFinalize() == 0);
  for (std::thread& thread : threads) thread.join();
  CHECK(refused == 4);
}
