// SPDX-License-Identifier: Apache-2.0
// Events of the host runtime: what waits for what, and what is refused.
#include "stream_session.hpp"
#include "support/soon.hpp"
#include "support/watchdog.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <thread>

using namespace devshare::test;
using devshare::host::Reason;
namespace acl = devshare::acl;
namespace code = devshare::acl::code;
namespace host = devshare::host;

namespace {

constexpr Refusal unknown{code::rt_invalid_handle, Reason::unknown_event};
constexpr Refusal elsewhere{code::rt_stream_context, Reason::other_device};
constexpr Refusal too_early{code::rt_param_invalid, Reason::not_happened};
constexpr Refusal late{code::rt_event_sync_timeout, Reason::timed_out};

class EventSession : public StreamSession {
 public:
  using StreamSession::StreamSession;
  acl::aclrtEvent event() const {
    acl::aclrtEvent made = nullptr;
    CHECK(acl.aclrtCreateEvent(&made) == 0);
    return made;
  }
  bool happened(acl::aclrtEvent event) const {
    acl::aclrtEventRecordedStatus status = -1;
    CHECK(acl.aclrtQueryEventStatus(event, &status) == 0);
    return status == acl::event_status::complete;
  }
};

}  // namespace

TEST_CASE("a stream that waits for an event goes on when another has come to it") {
  const Watchdog watchdog("an event");
  EventSession session;
  const auto& rt = session.acl;
  const acl::aclrtStream first = session.stream();
  const acl::aclrtStream second = session.stream();
  const acl::aclrtEvent event = session.event();
  std::atomic<bool> ran{false};
  Gate gate;
  gate.hold_up(first);
  CHECK_FALSE(session.happened(event));
  REQUIRE(rt.aclrtRecordEvent(event, first) == 0);
  REQUIRE(rt.aclrtStreamWaitEvent(second, event) == 0);
  REQUIRE(host::launch(second, set_flag, &ran) == 0);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  CHECK_FALSE(session.happened(event));
  CHECK_FALSE(ran);
  CHECK(refused(rt.aclrtSynchronizeEventWithTimeout(event, 0)) == late);
  const auto before = std::chrono::steady_clock::now();
  CHECK(refused(rt.aclrtSynchronizeEventWithTimeout(event, 100)) == late);  // 100 s would be the watchdog's
  CHECK(std::chrono::steady_clock::now() - before >= std::chrono::milliseconds(100));
  CHECK(rt.aclrtSynchronizeStreamWithTimeout(second, 0) == code::rt_stream_sync_timeout);
  gate.open();
  CHECK(rt.aclrtSynchronizeEvent(event) == 0);
  CHECK(session.happened(event));
  CHECK(rt.aclrtSynchronizeStream(second) == 0);
  CHECK(ran);
  CHECK(rt.aclrtSynchronizeEventWithTimeout(event, 0) == 0);
  CHECK(rt.aclrtDestroyEvent(event) == 0);
  CHECK(host::counters().events == 0);
}

TEST_CASE("who waits for an event waits for what was recorded then: recording it again moves nobody") {
  const Watchdog watchdog("an event recorded again");
  EventSession session;
  const auto& rt = session.acl;
  const acl::aclrtStream early = session.stream();
  const acl::aclrtStream late_stream = session.stream();
  const acl::aclrtStream waits = session.stream();
  const acl::aclrtEvent event = session.event();
  REQUIRE(rt.aclrtStreamWaitEvent(waits, event) == 0);  // never recorded: waits for nothing
  CHECK(rt.aclrtSynchronizeStream(waits) == 0);
  CHECK(rt.aclrtSynchronizeEvent(event) == 0);
  Gate first;
  Gate second;
  first.hold_up(early);
  second.hold_up(late_stream);
  REQUIRE(rt.aclrtRecordEvent(event, early) == 0);
  REQUIRE(rt.aclrtStreamWaitEvent(waits, event) == 0);
  REQUIRE(rt.aclrtRecordEvent(event, late_stream) == 0);
  CHECK(rt.aclrtSynchronizeStreamWithTimeout(waits, 0) == code::rt_stream_sync_timeout);
  first.open();
  CHECK(rt.aclrtSynchronizeStream(waits) == 0);
  CHECK_FALSE(session.happened(event));  // the newer one
  second.open();
  CHECK(rt.aclrtSynchronizeEvent(event) == 0);
  CHECK(session.happened(event));
  REQUIRE(rt.aclrtResetEvent(event, waits) == 0);
  CHECK(rt.aclrtSynchronizeStream(waits) == 0);
  CHECK_FALSE(session.happened(event));
}

TEST_CASE("a chain of 300 streams, each waiting for the one before and all enqueued in reverse, ends in order") {
  const Watchdog watchdog("a chain of streams", std::chrono::seconds(240));
  EventSession session;
  const auto& rt = session.acl;
  constexpr std::size_t count = 300;
  struct Link {
    std::atomic<int>* next;
    int number;
    bool in_order = false;
  };
  std::atomic<int> next{0};
  std::array<acl::aclrtStream, count> streams{};
  std::array<acl::aclrtEvent, count> events{};
  std::array<Link, count> links{};
  const auto pass = [](void* argument) {
    Link& link = *static_cast<Link*>(argument);
    link.in_order = link.next->fetch_add(1) == link.number;
  };
  const std::size_t threads = threads_of_process();
  for (std::size_t i = 0; i < count; ++i) {
    streams[i] = session.stream();
    events[i] = session.event();
    links[i] = {&next, static_cast<int>(i)};
  }
  // Every event is recorded behind a wait for the event before it; the first is recorded last.
  Gate gate;
  gate.hold_up(streams[0]);
  REQUIRE(host::launch(streams[0], pass, &links[0]) == 0);
  REQUIRE(rt.aclrtRecordEvent(events[0], streams[0]) == 0);
  for (std::size_t i = 1; i < count; ++i) {
    REQUIRE(rt.aclrtStreamWaitEvent(streams[i], events[i - 1]) == 0);
    REQUIRE(host::launch(streams[i], pass, &links[i]) == 0);
    REQUIRE(rt.aclrtRecordEvent(events[i], streams[i]) == 0);
  }
  CHECK(threads_of_process() <= threads + 3);  // streams that wait hold up no thread
  gate.open();
  CHECK(rt.aclrtSynchronizeEvent(events[count - 1]) == 0);
  CHECK(next == static_cast<int>(count));
  CHECK(std::all_of(links.begin(), links.end(), [](const Link& link) { return link.in_order; }));
  CHECK(rt.aclrtSynchronizeDevice() == 0);
}

TEST_CASE("the time between two events is known when both have happened, and kept time") {
  const Watchdog watchdog("elapsed time");
  EventSession session;
  const auto& rt = session.acl;
  const acl::aclrtStream stream = session.stream();
  const acl::aclrtEvent start = session.event();
  const acl::aclrtEvent end = session.event();
  acl::aclrtEvent timeless = nullptr;
  REQUIRE(rt.aclrtCreateEventWithFlag(&timeless, acl::event_flag::sync) == 0);
  void* const memory = session.allocate(4096);
  float ms = -1;
  CHECK(refused(rt.aclrtEventElapsedTime(&ms, start, end)) == too_early);
  host::delay_task(acl::Entry::aclrtMemsetAsync, 30);
  const auto before = std::chrono::steady_clock::now();
  REQUIRE(rt.aclrtRecordEvent(start, stream) == 0);
  REQUIRE(rt.aclrtMemsetAsync(memory, 1, 1, 1, stream) == 0);
  REQUIRE(rt.aclrtRecordEvent(end, stream) == 0);
  REQUIRE(rt.aclrtRecordEvent(timeless, stream) == 0);
  CHECK(refused(rt.aclrtEventElapsedTime(&ms, start, end)) == too_early);
  CHECK(rt.aclrtSynchronizeStream(stream) == 0);
  const std::chrono::duration<float, std::milli> passed = std::chrono::steady_clock::now() - before;
  CHECK(rt.aclrtEventElapsedTime(&ms, start, end) == 0);
  CHECK(ms >= 30);
  CHECK(ms <= passed.count());
  CHECK(refused(rt.aclrtEventElapsedTime(&ms, start, timeless)) == bad);
  CHECK(refused(rt.aclrtEventElapsedTime(nullptr, start, end)) == null);
  CHECK(refused(rt.aclrtEventElapsedTime(&ms, nullptr, end)) == null);
  int object = 0;
  CHECK(refused(rt.aclrtEventElapsedTime(&ms, start, &object)) == unknown);
}

TEST_CASE("events refuse what they are not: unknown flags, other devices, ended ones, nothing at all") {
  EventSession session;
  const auto& rt = session.acl;
  acl::aclrtEvent made = nullptr;
  acl::aclrtEventRecordedStatus status = -1;
  CHECK(refused(rt.aclrtCreateEvent(nullptr)) == null);
  CHECK(refused(rt.aclrtCreateEventWithFlag(&made, 0x400)) == bad);
  CHECK(refused(rt.aclrtCreateEventExWithFlag(&made, 0x4)) == bad);
  const acl::aclrtEvent ended = session.event();
  REQUIRE(rt.aclrtDestroyEvent(ended) == 0);
  int object = 0;
  const acl::aclrtStream stream = session.stream();
  for (const acl::aclrtEvent event : {ended, static_cast<acl::aclrtEvent>(&object), acl::aclrtEvent{stream}}) {
    CHECK(refused(rt.aclrtDestroyEvent(event)) == unknown);
    CHECK(refused(rt.aclrtRecordEvent(event, nullptr)) == unknown);
    CHECK(refused(rt.aclrtResetEvent(event, nullptr)) == unknown);
    CHECK(refused(rt.aclrtStreamWaitEvent(nullptr, event)) == unknown);
    CHECK(refused(rt.aclrtSynchronizeEvent(event)) == unknown);
    CHECK(refused(rt.aclrtQueryEventStatus(event, &status)) == unknown);
  }
  CHECK(refused(rt.aclrtDestroyEvent(nullptr)) == null);
  CHECK(refused(rt.aclrtRecordEvent(nullptr, nullptr)) == null);
  CHECK(refused(rt.aclrtStreamWaitEvent(nullptr, nullptr)) == null);
  CHECK(refused(rt.aclrtSynchronizeEvent(nullptr)) == null);
  CHECK(refused(rt.aclrtQueryEventStatus(nullptr, &status)) == null);
  const acl::aclrtEvent event = session.event();
  CHECK(refused(rt.aclrtQueryEventStatus(event, nullptr)) == null);
  CHECK(refused(rt.aclrtSynchronizeEventWithTimeout(event, -2)) == bad);
  REQUIRE(rt.aclrtSetDevice(1) == 0);
  const acl::aclrtStream there = session.stream();
  CHECK(refused(rt.aclrtRecordEvent(event, there)) == elsewhere);
  CHECK(refused(rt.aclrtStreamWaitEvent(there, event)) == elsewhere);
  std::thread([&] {
    const Refusal no_context{code::rt_context_null, Reason::no_context};
    CHECK(refused(rt.aclrtCreateEvent(&made)) == no_context);
    CHECK(refused(rt.aclrtRecordEvent(event, nullptr)) == no_context);
    CHECK(refused(rt.aclrtSynchronizeEvent(event)) == no_context);
  }).join();
  CHECK(host::counters().events == 1);
}

TEST_CASE("what waits for an event is let go when one of the streams is destroyed by force, not when the event is") {
  const Watchdog watchdog("an event that never comes");
  std::atomic<bool> ran{false};
  {
    EventSession session;
    const auto& rt = session.acl;
    const acl::aclrtStream held = session.stream();
    const acl::aclrtStream waits = session.stream();
    const acl::aclrtEvent event = session.event();
    Gate gate;
    gate.hold_up(held);
    gate.await_reached();
    REQUIRE(rt.aclrtRecordEvent(event, held) == 0);
    REQUIRE(rt.aclrtStreamWaitEvent(waits, event) == 0);
    REQUIRE(host::launch(waits, set_flag, &ran) == 0);
    REQUIRE(rt.aclrtStreamWaitEvent(nullptr, event) == 0);
    SECTION("the waiting stream is destroyed by force") {
      CHECK(rt.aclrtDestroyStreamForce(waits) == 0);
      CHECK_FALSE(ran);
      gate.open();
    }
    SECTION("the recording stream is destroyed by force: who waited goes on") {
      std::thread opener([&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
        gate.open();
      });
      CHECK(rt.aclrtDestroyStreamForce(held) == 0);
      CHECK(rt.aclrtSynchronizeStream(waits) == 0);
      CHECK(rt.aclrtSynchronizeEvent(event) == 0);
      CHECK(ran);
      opener.join();
    }
    SECTION("the event is destroyed: who waits goes on waiting for its recording") {
      CHECK(rt.aclrtDestroyEvent(event) == 0);
      CHECK(rt.aclrtSynchronizeStreamWithTimeout(waits, 10) == code::rt_stream_sync_timeout);
      gate.open();
      CHECK(rt.aclrtSynchronizeStream(waits) == 0);
      CHECK(ran);
    }
  }
  CHECK(host::counters().events == 0);
}
