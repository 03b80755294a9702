// SPDX-License-Identifier: Apache-2.0
// Runtime::finalize() with work in streams: what waits for something that never comes is dropped, as aclFinalize does;
// what has begun is waited for; and what is an engine's goes on.
#include "support/sharing.hpp"
#include "support/watchdog.hpp"

#include <devshare/instrument.hpp>

#include <atomic>
#include <chrono>
#include <thread>
#include <utility>

using namespace devshare;
using namespace devshare::test;

namespace {

constexpr std::size_t size = 4096;

// A function in a stream that lasts until it is let go.
struct Work {
  std::atomic<bool> begun{false};
  std::atomic<bool> may_end{false};
  std::atomic<bool> done{false};

  static void run(void* self) {
    Work& work = *static_cast<Work*>(self);
    work.begun = true;
    work.begun.notify_all();
    work.may_end.wait(false);
    work.done = true;
  }
};

}  // namespace

TEST_CASE("a runtime is finalized although streams wait for what nobody will record") {
  Story story;
  story.actor("A", [](Actor& me) {
    const Party a(me);
    const Watchdog watchdog("finalize with streams that wait");
    DeviceMemory memory = a.allocate(size);
    SharedNotify never = me.must(SharedNotify::create(a.device), "a notify is made");
    Stream waits = me.must(Stream::create(a.device), "a stream");
    Stream waits_for_it = me.must(Stream::create(a.device), "another");
    const Event event = me.must(Event::create(a.device), "an event");
    me.must(never.hold_up(waits), "the first waits for a notify");
    me.must(event.record(waits), "its end is recorded");
    me.must(event.hold_up(waits_for_it), "and waited for");
    me.must(fill(waits_for_it, memory.bytes(), std::byte{1}), "with work behind it");
    me.must(never.hold_up(StreamRef::default_of(a.device)), "the device's own stream waits, too");

    me.must(a.runtime.finalize(), "the runtime ends");
    me.expect(host::counters() == host::Counters{}, "nothing is left of it");
    a.refused(waits.synchronize(), {Errc::runtime_gone}, "its streams are gone");
    a.refused(std::move(waits).close(), {Errc::runtime_gone}, "there is nothing to close");

    const Runtime again = me.must(Runtime::open(), "and may be opened again");
    const Device device = me.must(again.device(DeviceId{0}), "with its device");
    const Stream stream = me.must(Stream::create(device), "and streams");
    DeviceMemory fresh = me.must(DeviceMemory::allocate(device, size), "and memory");
    me.must(fill(stream, fresh.bytes(), std::byte{2}), "that work");
    me.must(stream.synchronize(), "as before");
  });
  story.run();
}

TEST_CASE("a runtime that is finalized waits for work that has begun") {
  Story story;
  story.actor("A", [](Actor& me) {
    const Party a(me);
    const Watchdog watchdog("finalize with work that runs");
    Stream stream = me.must(Stream::create(a.device), "a stream");
    Work work;
    me.must(a.device.make_current(), "the device on this thread");
    a.call_succeeds(host::launch(stream.native_handle(), &Work::run, &work), "work is in it");
    work.begun.wait(false);
    std::thread later([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      work.may_end = true;
      work.may_end.notify_all();
    });
    me.must(a.runtime.finalize(), "the runtime ends");
    me.expect(work.done, "after the work");
    later.join();
  });
  story.run();
}

TEST_CASE("an engine's streams go on when devshare, which did not initialise the runtime, ends its part") {
  Story story;
  story.actor("A", [](Actor& me) {
    const Watchdog watchdog("finalize beside an engine");
    const acl::Table& engine = host::table();
    me.expect_equal(engine.aclInit(nullptr), 0, "the engine initialises");
    me.expect_equal(engine.aclrtSetDevice(0), 0, "and has the device");
    acl::aclrtStream stream = nullptr;
    acl::aclrtNotify notify = nullptr;
    me.expect_equal(engine.aclrtCreateStream(&stream), 0, "a stream");
    me.expect_equal(engine.aclrtCreateNotify(&notify, 0), 0, "a notify");
    me.expect_equal(engine.aclrtWaitAndResetNotify(notify, stream, 0), 0, "which the stream waits for");

    const Runtime runtime = me.must(Runtime::open(), "devshare opens it");
    me.must(runtime.device(DeviceId{0}), "and uses the device");
    me.must(runtime.finalize(), "and ends its part");
    me.expect_equal(engine.aclrtSetDevice(0), 0, "which took the device from this thread");
    me.expect_equal(engine.aclrtRecordNotify(notify, nullptr), 0, "the engine records");
    me.expect_equal(engine.aclrtSynchronizeStream(stream), 0, "and its stream goes on");
    me.expect_equal(engine.aclFinalize(), 0, "to its end");
  });
  story.run();
}

TEST_CASE("a device is given back although the runtime refuses to end") {
  Story story;
  story.actor("A", [](Actor& me) {
    const Party a(me);
    host::fail(acl::Entry::aclFinalize, 1, code::rt_drv_internal);
    a.refused(a.runtime.finalize(), {Errc::refused, code::rt_drv_internal, Reason::injected}, "the runtime does not end");
    me.expect_equal(api().aclrtResetDevice(0), code::rt_context_release, "no count of its device is left");
    me.expect_equal(api().aclFinalize(), 0, "and it can be ended");
  });
  story.run();
}
