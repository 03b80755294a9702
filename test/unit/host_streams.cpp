// SPDX-License-Identifier: Apache-2.0
// Streams of the host runtime: asynchronous, in order, and no threads of their own.
#include "host/stream_state.hpp"
#include "stream_session.hpp"
#include "support/sanitizers.hpp"
#include "support/soon.hpp"
#include "support/watchdog.hpp"

#include <array>
#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

using namespace devshare::test;
using devshare::host::Reason;
namespace acl = devshare::acl;
namespace code = devshare::acl::code;
namespace host = devshare::host;
namespace kind = devshare::acl::memcpy_kind;

namespace {

constexpr std::size_t size = 64 << 10;

void* block(const HostSession& session, std::size_t bytes = size) {
  void* const memory = session.allocate(bytes);
  REQUIRE(memory != nullptr);
  return memory;
}

}  // namespace

TEST_CASE("a stream carries out what was enqueued, in order, while its caller goes on") {
  const Watchdog watchdog("a stream");
  StreamSession session;
  void* const memory = block(session);
  const LockedBytes first(size, 'a');
  const LockedBytes second(size, 'b');
  const LockedBytes read_first(size);
  const LockedBytes read_last(size);
  const acl::aclrtStream stream = session.stream();
  Gate gate;
  gate.hold_up(stream);
  REQUIRE(gate.code() == 0);
  REQUIRE(session.to_device(memory, first, stream) == 0);
  REQUIRE(session.to_host(read_first, memory, stream) == 0);
  REQUIRE(session.to_device(memory, second, stream) == 0);
  REQUIRE(session.acl.aclrtMemsetAsync(memory, size, 'c', size / 2, stream) == 0);
  REQUIRE(session.to_host(read_last, memory, stream) == 0);
  CHECK_FALSE(session.complete(stream));
  CHECK(read_first.all(0));

  gate.open();
  CHECK(session.acl.aclrtSynchronizeStream(stream) == 0);
  CHECK(session.complete(stream));
  CHECK(read_first.all('a'));
  CHECK(read_last[0] == 'c');
  CHECK(read_last[size / 2 - 1] == 'c');
  CHECK(read_last[size / 2] == 'b');
  CHECK(read_last[size - 1] == 'b');
  CHECK(session.acl.aclrtDestroyStream(stream) == 0);
  CHECK(session.acl.aclrtFree(memory) == 0);
}

TEST_CASE("1,000 streams keep their order and cost no 1,000 threads") {
  const Watchdog watchdog("1,000 streams", std::chrono::seconds(240));
  StreamSession session;
  constexpr std::size_t count = 1000;
  constexpr int tasks = 50;
  struct Counter {
    int next = 0;  // the stream's own: nobody else touches it
    bool in_order = true;
  };
  struct Step {
    Counter* counter;
    int number;
  };
  const std::size_t threads = threads_of_process();
  std::vector<acl::aclrtStream> streams(count);
  std::vector<Counter> counters(count);
  std::vector<std::array<Step, tasks>> steps(count);
  for (acl::aclrtStream& stream : streams) REQUIRE(session.acl.aclrtCreateStream(&stream) == 0);
  CHECK(threads_of_process() == threads);  // none before the first task
  CHECK(host::counters().streams == count);
  const auto count_one = [](void* argument) {
    const Step& step = *static_cast<const Step*>(argument);
    step.counter->in_order = step.counter->in_order && step.counter->next == step.number;
    ++step.counter->next;
  };
  void* const memory = block(session);
  for (int task = 0; task < tasks; ++task) {
    for (std::size_t i = 0; i < count; ++i) {
      steps[i][static_cast<std::size_t>(task)] = {&counters[i], task};
      REQUIRE(host::launch(streams[i], count_one, &steps[i][static_cast<std::size_t>(task)]) == 0);
    }
  }
  CHECK(session.acl.aclrtSynchronizeDevice() == 0);
  bool all_in_order = true;
  for (const Counter& counter : counters) all_in_order = all_in_order && counter.in_order && counter.next == tasks;
  CHECK(all_in_order);
  for (std::size_t i = 0; i < count; ++i) {  // each writes its own bytes: nothing orders one stream after another
    REQUIRE(session.acl.aclrtMemsetAsync(static_cast<char*>(memory) + i, 1, 1, 1, streams[i]) == 0);
  }
  CHECK(session.acl.aclrtSynchronizeDevice() == 0);
  CHECK(threads_of_process() <= threads + 64);
  for (const acl::aclrtStream stream : streams) REQUIRE(session.acl.aclrtDestroyStream(stream) == 0);
  CHECK(host::counters().streams == 0);
  // Workers that were started beyond two while functions ran end by themselves.
  CHECK(soon([&] { return threads_of_process() <= threads + 2; }));
}

TEST_CASE("copies alone are worked off by two threads, and aclFinalize leaves none") {
  const std::size_t threads = threads_of_process();
  {
    StreamSession session;
    const LockedBytes bytes(size, 'x');
    std::array<acl::aclrtStream, 32> streams{};
    std::array<void*, 32> memory{};  // each its own: nothing orders one stream after another
    for (acl::aclrtStream& stream : streams) stream = session.stream();
    for (void*& each : memory) each = block(session);
    for (int round = 0; round < 20; ++round) {
      for (std::size_t i = 0; i < streams.size(); ++i) REQUIRE(session.to_device(memory[i], bytes, streams[i]) == 0);
    }
    CHECK(session.acl.aclrtSynchronizeDevice() == 0);
    CHECK(threads_of_process() > threads);
    CHECK(threads_of_process() <= threads + 2);
  }
  CHECK(threads_of_process() == threads);
}

TEST_CASE("threads that enqueue at once lose nothing") {
  const Watchdog watchdog("enqueueing threads");
  StreamSession session;
  constexpr int threads = 4;
  constexpr int tasks = 500;
  std::array<acl::aclrtStream, 8> streams{};
  for (acl::aclrtStream& stream : streams) stream = session.stream();
  std::atomic<int> done{0};
  const auto count_one = [](void* argument) { static_cast<std::atomic<int>*>(argument)->fetch_add(1); };
  std::vector<std::thread> all;
  for (int thread = 0; thread < threads; ++thread) {
    all.emplace_back([&] {
      if (session.acl.aclrtSetDevice(0) != 0) return;
      for (int task = 0; task < tasks; ++task) {
        if (host::launch(streams[static_cast<std::size_t>(task) % streams.size()], count_one, &done) != 0) return;
      }
      for (const acl::aclrtStream stream : streams) (void)session.acl.aclrtSynchronizeStream(stream);
    });
  }
  for (std::thread& thread : all) thread.join();
  CHECK(done == threads * tasks);
}

TEST_CASE("functions in streams may wait for each other's streams, however many wait at once") {
  const Watchdog watchdog("functions that wait");
  StreamSession session;
  constexpr std::size_t count = 12;  // more than there are workers for copies
  std::array<Gate, count> gates;
  std::array<acl::aclrtStream, count> streams{};
  for (std::size_t i = 0; i < count; ++i) {
    streams[i] = session.stream();
    gates[i].hold_up(streams[i]);
    REQUIRE(gates[i].code() == 0);
  }
  // The last stream opens all others.
  const auto open_all = [](void* argument) {
    for (Gate& gate : *static_cast<std::array<Gate, count>*>(argument)) gate.open();
  };
  const acl::aclrtStream last = session.stream();
  REQUIRE(host::launch(last, open_all, &gates) == 0);
  CHECK(session.acl.aclrtSynchronizeDevice() == 0);
}

TEST_CASE("pageable host memory makes the asynchronous call wait for its turn, and its error the call's own") {
  const Watchdog watchdog("pageable memory");
  StreamSession session;
  void* const memory = block(session);
  std::vector<unsigned char> pageable(size, 'p');
  const acl::aclrtStream stream = session.stream();
  const LockedBytes locked(size, 'l');
  REQUIRE(session.to_device(memory, locked, stream) == 0);
  CHECK(session.acl.aclrtMemcpyAsync(pageable.data(), size, memory, size, kind::device_to_host, stream) == 0);
  CHECK(pageable == std::vector<unsigned char>(size, 'l'));  // there already: the copy before it, and itself

  host::fail_task(acl::Entry::aclrtMemcpyAsync, 1, code::rt_drv_internal);
  CHECK(session.acl.aclrtMemcpyAsync(memory, size, pageable.data(), size, kind::host_to_device, stream) ==
        code::rt_drv_internal);
  CHECK(last_reason() == Reason::injected);
  CHECK(session.acl.aclrtSynchronizeStream(stream) == 0);  // told already

  // Registered memory is locked.
  alignas(4096) static unsigned char registered[2 * 4096];
  REQUIRE(session.acl.aclrtHostRegisterV2(registered, sizeof registered, acl::host_register_flag::pinned) == 0);
  Gate gate;
  gate.hold_up(stream);
  REQUIRE(session.acl.aclrtMemcpyAsync(registered, sizeof registered, memory, sizeof registered, kind::device_to_host,
                                       stream) == 0);
  CHECK(registered[0] == 0);
  gate.open();
  CHECK(session.acl.aclrtSynchronizeStream(stream) == 0);
  CHECK(registered[sizeof registered - 1] == 'l');
  CHECK(session.acl.aclrtHostUnregister(registered) == 0);
}

TEST_CASE("a delay of a task holds up its own stream only, however many are delayed") {
  const Watchdog watchdog("a delayed task");
  StreamSession session;
  void* const memory = block(session);
  const LockedBytes slow(size, 's');
  constexpr std::chrono::milliseconds delay{2000};
  const acl::aclrtStream other = session.stream();
  host::delay_task(acl::Entry::aclrtMemcpyAsync, delay.count());
  const auto start = std::chrono::steady_clock::now();
  std::atomic<int> past_their_delay{0};
  std::array<acl::aclrtStream, 3> delayed{};  // more than there are workers
  for (acl::aclrtStream& stream : delayed) {
    stream = session.stream();
    REQUIRE(session.to_device(memory, slow, stream) == 0);
    const auto note = [](void* count) { ++*static_cast<std::atomic<int>*>(count); };
    REQUIRE(host::launch(stream, note, &past_their_delay) == 0);
  }
  CHECK(session.acl.aclrtMemsetAsync(memory, 1, 1, 1, other) == 0);
  CHECK(session.acl.aclrtSynchronizeStream(other) == 0);
  CHECK(past_their_delay == 0);
  for (const acl::aclrtStream stream : delayed) CHECK(session.acl.aclrtSynchronizeStream(stream) == 0);
  CHECK(past_their_delay == 3);
  CHECK(std::chrono::steady_clock::now() - start >= delay);
}

TEST_CASE("of streams that have something to do those of a higher priority have their turn first") {
  const Watchdog watchdog("streams with priorities");
  struct Turn {
    std::vector<std::uint32_t>* order;
    std::uint32_t priority;
  };
  std::vector<std::uint32_t> order;
  std::vector<Turn> turns;
  for (const std::uint32_t priority : {7U, 3U, 0U, 7U, 0U, 3U}) turns.push_back({&order, priority});
  StreamSession session;
  const auto& rt = session.acl;
  std::array<Gate, host::StreamState::most_workers> gates;  // hold all workers there can be
  for (Gate& gate : gates) {
    gate.hold_up(session.stream());
    REQUIRE(gate.code() == 0);
  }
  for (Gate& gate : gates) gate.await_reached();
  std::vector<acl::aclrtStream> streams;
  for (Turn& turn : turns) {
    acl::aclrtStream stream = nullptr;
    REQUIRE(rt.aclrtCreateStreamWithConfig(&stream, turn.priority, 0) == 0);
    const auto take = [](void* mine) {
      static_cast<Turn*>(mine)->order->push_back(static_cast<Turn*>(mine)->priority);
    };
    REQUIRE(host::launch(stream, take, &turn) == 0);
    streams.push_back(stream);
  }
  gates[0].open();  // one worker, which takes them one after the other
  for (const acl::aclrtStream stream : streams) CHECK(rt.aclrtSynchronizeStream(stream) == 0);
  CHECK(order == std::vector<std::uint32_t>{0, 0, 3, 3, 7, 7});
}

TEST_CASE("the default stream is a stream: one for each context, reached by null") {
  const Watchdog watchdog("the default stream");
  StreamSession session;
  void* const memory = block(session);
  const LockedBytes bytes(size, 'd');
  const LockedBytes read(size);
  Gate gate;
  gate.hold_up(nullptr);
  REQUIRE(session.to_device(memory, bytes, nullptr) == 0);
  CHECK_FALSE(session.complete(nullptr));
  acl::aclrtContext own = nullptr;
  acl::aclrtContext other = nullptr;
  REQUIRE(session.acl.aclrtGetCurrentContext(&own) == 0);
  REQUIRE(session.acl.aclrtCreateContext(&other, 0) == 0);  // and it is current
  CHECK(session.complete(nullptr));                         // that context's
  CHECK(session.acl.aclrtSynchronizeStream(nullptr) == 0);
  REQUIRE(session.acl.aclrtSetCurrentContext(own) == 0);
  CHECK_FALSE(session.complete(nullptr));
  gate.open();
  REQUIRE(session.to_host(read, memory, nullptr) == 0);
  CHECK(session.acl.aclrtSynchronizeStream(nullptr) == 0);
  CHECK(read.all('d'));
  CHECK(session.acl.aclrtDestroyContext(other) == 0);
  CHECK(host::counters().streams == 0);
}
