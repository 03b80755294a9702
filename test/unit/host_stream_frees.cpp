// SPDX-License-Identifier: Apache-2.0
// Memory that tasks in streams use, freed beside them (R5): refused while one has it, and at no other time.
#include "host/block_record.hpp"
#include "physical_session.hpp"
#include "stream_session.hpp"
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

constexpr std::size_t size = 4096;

}  // namespace

TEST_CASE("a free beside an enqueue wins or is refused, and never waits for the stream") {
  const Watchdog watchdog("a free beside an enqueue");
  StreamSession session;
  const acl::aclrtStream stream = session.stream();
  acl::aclrtNotify notify = nullptr;
  REQUIRE(session.acl.aclrtCreateNotify(&notify, 0) == 0);
  REQUIRE(session.acl.aclrtWaitAndResetNotify(notify, stream, 0) == 0);  // that nobody records
  const LockedBytes bytes(size);
  std::atomic<int> round{0};
  std::atomic<int> freed_in{0};
  std::atomic<void*> memory{nullptr};
  std::atomic<acl::aclError> freed{0};
  std::thread other([&] {
    session.acl.aclrtSetDevice(0);
    for (int next = 1;; ++next) {
      while (round == next - 1) std::this_thread::yield();
      if (round < 0) break;
      for (std::atomic<int> spin{next % 300}; spin > 0; --spin) {
      }
      freed = session.acl.aclrtFree(memory);
      freed_in = next;
    }
    session.acl.aclrtResetDevice(0);
  });
  int wrong = 0;
  constexpr int rounds = 3000;
  for (int next = 1; next <= rounds; ++next) {
    memory = session.allocate(size);
    round = next;
    for (std::atomic<int> spin{100}; spin > 0; --spin) {
    }
    const acl::aclError enqueued = session.to_device(memory, bytes, stream);
    while (freed_in != next) std::this_thread::yield();
    if ((enqueued == 0) == (freed == 0)) ++wrong;
    if (freed == 0) continue;
    // What the stream has is dropped with it.
    if (freed != code::rt_drv_internal || enqueued != 0) ++wrong;
  }
  round = -1;
  other.join();
  CHECK(wrong == 0);
  CHECK(session.acl.aclrtDestroyStreamForce(stream) == 0);
}

TEST_CASE("what a task used is free as soon as others can see that it is done, whatever stands behind it") {
  const Watchdog watchdog("memory behind a value");
  StreamSession session;
  const acl::aclrtStream first = session.stream();
  const acl::aclrtStream second = session.stream();
  void* const used = session.allocate(size);
  void* const word = session.allocate(size);
  void* const slow = session.allocate(size);
  const LockedBytes bytes(size);
  REQUIRE(session.acl.aclrtMemset(word, size, 0, size) == 0);
  host::delay_task(acl::Entry::aclrtMemcpyAsync, 1000);
  Gate gate;
  gate.hold_up(first);  // so that all of them stand in a row
  REQUIRE(session.acl.aclrtMemsetAsync(used, size, 1, size, first) == 0);
  REQUIRE(session.acl.aclrtValueWrite(word, 7, 0, first) == 0);
  REQUIRE(session.to_device(slow, bytes, first) == 0);
  REQUIRE(session.acl.aclrtValueWait(word, 7, acl::value_wait::equal, second) == 0);
  gate.open();
  CHECK(session.acl.aclrtSynchronizeStream(second) == 0);
  CHECK(session.acl.aclrtFree(used) == 0);
  CHECK(session.acl.aclrtSynchronizeStream(first) == 0);
  CHECK(session.acl.aclrtFree(slow) == 0);
}

TEST_CASE("what many tasks in a row used is free when they are done, however many pieces of memory that is") {
  const Watchdog watchdog("memory of many tasks");
  StreamSession session;
  const acl::aclrtStream stream = session.stream();
  std::vector<void*> pieces;
  for (int i = 0; i < 20; ++i) pieces.push_back(session.allocate(size));
  Gate gate;
  gate.hold_up(stream);
  bool enqueued = true;
  for (std::size_t i = 0; i < 400; ++i) {
    void* const to = pieces[i * 7 % pieces.size()];
    void* const from = pieces[i * 3 % pieces.size()];
    enqueued = enqueued && session.acl.aclrtMemsetAsync(to, size, 1, size, stream) == 0 &&
               session.acl.aclrtMemcpyAsync(to, size, from, size, kind::device_to_device, stream) == 0;
  }
  CHECK(enqueued);
  for (void* const piece : pieces) CHECK(session.acl.aclrtFree(piece) == code::rt_drv_internal);
  gate.open();
  CHECK(session.acl.aclrtSynchronizeStream(stream) == 0);
  for (void* const piece : pieces) CHECK(session.acl.aclrtFree(piece) == 0);
}

TEST_CASE("all pieces of a reservation that a task uses are its own until it is done") {
  const Watchdog watchdog("pieces in a stream");
  StreamSession session;
  const PhysicalSession physical;
  const acl::aclrtStream stream = session.stream();
  std::byte* const place = physical.reserve(3 * piece_size);
  for (std::size_t i = 0; i < 3; ++i) physical.fill_in(place + i * piece_size);
  void* const memory = session.allocate(size);
  Gate gate;
  gate.hold_up(stream);
  CHECK(session.acl.aclrtMemcpyAsync(place + piece_size - size / 2, size, memory, size, kind::device_to_device,
                                     stream) == 0);
  CHECK(session.acl.aclrtUnmapMem(place) != 0);
  CHECK(session.acl.aclrtUnmapMem(place + piece_size) != 0);
  CHECK(session.acl.aclrtUnmapMem(place + 2 * piece_size) == 0);
  // What is refused leaves nothing behind in the pieces that there are.
  CHECK(session.acl.aclrtMemcpyAsync(place, 3 * piece_size, place, 3 * piece_size, kind::device_to_device, stream) != 0);
  gate.open();
  CHECK(session.acl.aclrtSynchronizeStream(stream) == 0);
  CHECK(session.acl.aclrtUnmapMem(place) == 0);
  CHECK(session.acl.aclrtUnmapMem(place + piece_size) == 0);
}

TEST_CASE("a free does not wait for the pins of tasks, but for those of calls, and what is being freed takes none") {
  const Watchdog watchdog("pins");
  StreamSession session;
  void* const memory = session.allocate(size);
  void* const other = session.allocate(size);
  {
    host::EndedPins ended;
    ended.add(host::PinnedBlock(memory, host::Pin::of_task));
    ended.add(host::PinnedBlock(other, host::Pin::of_task));
    ended.add(host::PinnedBlock(memory, host::Pin::of_task));
    CHECK(refused(session.acl.aclrtFree(memory)) == Refusal{code::rt_drv_internal, Reason::in_use});
    CHECK(refused(session.acl.aclrtFree(other)) == Refusal{code::rt_drv_internal, Reason::in_use});
  }
  CHECK(session.acl.aclrtFree(other) == 0);
  acl::aclError freed = -1;
  std::thread ends;
  {
    const host::PinnedBlock pinned(memory);
    ends = std::thread([&] {
      session.acl.aclrtSetDevice(0);
      freed = session.acl.aclrtFree(memory);
      session.acl.aclrtResetDevice(0);
    });
    while (host::PinnedBlock(memory)) std::this_thread::yield();
    CHECK_FALSE(pinned.record()->pin(host::Pin::of_task));
    CHECK_FALSE(pinned.record()->pin());
    CHECK(pinned.record()->life == 1);
  }
  ends.join();
  CHECK(freed == 0);
}

TEST_CASE("host memory is locked where all of it is: registered from end to end, by one registration or several") {
  const Watchdog watchdog("memory registered in parts");
  StreamSession session;
  const acl::aclrtStream stream = session.stream();
  void* const memory = session.allocate(3 * size);
  alignas(size) static std::array<unsigned char, 3 * size> host_memory;
  const auto register_page = [&](std::size_t page) {
    return session.acl.aclrtHostRegisterV2(host_memory.data() + page * size, size, acl::host_register_flag::pinned);
  };
  REQUIRE(register_page(0) == 0);
  REQUIRE(register_page(2) == 0);
  const auto copy = [&] {
    return session.acl.aclrtMemcpyAsync(memory, 3 * size, host_memory.data(), 3 * size, kind::host_to_device, stream);
  };
  Gate gate;
  gate.hold_up(stream);
  std::atomic<bool> returned{false};
  acl::aclError copied = -1;
  std::thread other([&] {
    session.acl.aclrtSetDevice(0);
    copied = copy();
    returned = true;
    session.acl.aclrtResetDevice(0);
  });
  gate.await_reached();
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  CHECK_FALSE(returned);  // a page between the two is not: the call waits
  gate.open();
  other.join();
  CHECK(copied == 0);

  REQUIRE(register_page(1) == 0);
  Gate again;
  again.hold_up(stream);
  CHECK(copy() == 0);  // at once: the gate is closed
  again.open();
  CHECK(session.acl.aclrtSynchronizeStream(stream) == 0);
  for (std::size_t page = 0; page < 3; ++page) {
    CHECK(session.acl.aclrtHostUnregister(host_memory.data() + page * size) == 0);
  }
}
