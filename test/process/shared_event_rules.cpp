// SPDX-License-Identifier: Apache-2.0
// Events between processes (R49) and value waits, over the C ABI: who waits for whom, what they do not do, and what a
// killed side leaves.
#include "key_process.hpp"
#include "support/catch.hpp"

#include <atomic>
#include <cstring>
#include <string>

using namespace devshare;
using namespace devshare::test;

namespace {

struct Handle {
  acl::aclrtIpcEventHandle handle;
};

class EventProcess : public Process {
 public:
  explicit EventProcess(Actor& me, Switches switches = {}, std::int32_t device = 0)
      : Process(me, switches, device), me_(me) {}

  acl::aclrtEvent create() const {
    acl::aclrtEvent event = nullptr;
    succeeds(api().aclrtCreateEventExWithFlag(&event, acl::event_flag::ipc), "aclrtCreateEventExWithFlag");
    return event;
  }
  acl::aclrtStream stream() const {
    acl::aclrtStream made = nullptr;
    succeeds(api().aclrtCreateStream(&made), "aclrtCreateStream");
    return made;
  }
  Handle handle_of(acl::aclrtEvent event) const {
    Handle handle{};
    succeeds(api().aclrtIpcGetEventHandle(event, &handle.handle), "aclrtIpcGetEventHandle");
    return handle;
  }
  acl::aclrtEvent open(const Handle& handle) const {
    acl::aclrtEvent event = nullptr;
    const acl::aclError result = api().aclrtIpcOpenEventHandle(handle.handle, &event);
    if (result != 0) me_.expect(false, fmt::format("the event is not opened: {} {}", result, text()));
    return event;
  }
  void open_fails(const Handle& handle, Reason reason, std::string_view what) const {
    acl::aclrtEvent event = nullptr;
    refused(api().aclrtIpcOpenEventHandle(handle.handle, &event), code::rt_drv_internal, reason, what);
  }
  void refused(acl::aclError actual, acl::aclError expected, Reason reason, std::string_view what) const {
    const Reason why = host::last_cause().reason;
    me_.expect_equal(actual, expected, what);
    me_.expect_equal(why, reason, fmt::format("{}: the reason", what));
  }
  void succeeds(acl::aclError actual, std::string_view what) const { me_.expect_equal(actual, 0, what); }
  bool done(acl::aclrtStream in) const { return api().aclrtSynchronizeStreamWithTimeout(in, 0) == code::success; }

 private:
  Actor& me_;
};

}  // namespace

TEST_CASE("R49 an event between processes: each records, each waits, in streams and on the host") {
  Story story;
  story.actor("A", [](Actor& me) {
    const EventProcess a(me);
    const acl::aclrtEvent event = a.create();
    const acl::aclrtStream stream = a.stream();
    const Handle handle = a.handle_of(event);
    const Handle again = a.handle_of(event);
    me.expect(std::memcmp(&handle, &again, sizeof handle) == 0, "it has one handle");
    a.succeeds(api().aclrtSynchronizeEvent(event), "an event that was never recorded holds nobody up");
    a.succeeds(api().aclrtStreamWaitEvent(stream, event), "nor a stream");
    a.succeeds(api().aclrtSynchronizeStream(stream), "which goes on");
    me.send("B", handle);
    me.pause_until("B", "recorded");
    a.succeeds(api().aclrtStreamWaitEvent(stream, event), "A's stream waits for what B records");
    me.expect(!a.done(stream), "which has not happened");
    a.refused(api().aclrtSynchronizeEventWithTimeout(event, 10), code::rt_event_sync_timeout, Reason::timed_out,
              "nor has it for the host");
    me.step("waits");
    a.succeeds(api().aclrtSynchronizeStream(stream), "until it has");
    a.succeeds(api().aclrtSynchronizeEvent(event), "for the host too");
    me.pause_until("B", "waits");
    a.succeeds(api().aclrtRecordEvent(event, stream), "A records");
    me.pause_until("B", "done");
    a.succeeds(api().aclrtDestroyEvent(event), "A ends its own");
    me.step("ended");
    me.pause_until("B", "closed");
    me.expect_equal(host::counters().events, std::uint64_t{0}, "none is left");
  });
  story.actor("B", [](Actor& me) {
    const EventProcess b(me, {}, 1);
    const Handle handle = me.receive<Handle>("A");
    const acl::aclrtEvent event = b.open(handle);
    const acl::aclrtStream stream = b.stream();
    void* memory = b.allocate();
    host::delay_task(acl::Entry::aclrtMemsetAsync, 300);
    b.succeeds(api().aclrtMemsetAsync(memory, size, 1, size, stream), "something slow");
    b.succeeds(api().aclrtRecordEvent(event, stream), "B records behind it");
    me.step("recorded");
    me.pause_until("A", "waits");
    b.succeeds(api().aclrtSynchronizeStream(stream), "it has happened");
    const acl::aclrtStream waits = b.stream();
    // A's next recording is waited for from when it was begun, not before.
    b.succeeds(api().aclrtStreamWaitEvent(waits, event), "all that was begun has happened");
    b.succeeds(api().aclrtSynchronizeStream(waits), "and holds nobody up");
    me.step("waits");
    me.expect(
        soon([&] { return api().aclrtStreamWaitEvent(waits, event) == 0 && api().aclrtSynchronizeStream(waits) == 0; }),
        "B may wait for A's");
    me.step("done");
    me.pause_until("A", "ended");
    b.open_fails(handle, Reason::unknown_key, "what its creator has ended");
    b.succeeds(api().aclrtRecordEvent(event, stream), "what B has it may record");
    b.succeeds(api().aclrtSynchronizeEvent(event), "and wait for");
    b.succeeds(api().aclrtDestroyEvent(event), "until B ends it too");
    me.expect_equal(host::counters().events, std::uint64_t{0}, "none is left");
    b.free(memory);
    me.step("closed");
  });
  story.run();
}

TEST_CASE("R49 an event between processes takes no query, reset or measurement, and its flag goes alone") {
  Story story;
  story.actor("A", [](Actor& me) {
    const EventProcess a(me);
    const acl::aclrtEvent event = a.create();
    const Handle handle = a.handle_of(event);
    acl::aclrtEvent plain = nullptr;
    a.succeeds(api().aclrtCreateEvent(&plain), "an event of this process");
    for (const std::uint32_t other : {acl::event_flag::sync, acl::event_flag::time_line, acl::event_flag::external}) {
      acl::aclrtEvent made = nullptr;
      a.refused(api().aclrtCreateEventExWithFlag(&made, acl::event_flag::ipc | other), code::rt_param_invalid,
                Reason::shared_event, "with another flag");
    }
    acl::aclrtEventRecordedStatus status = -1;
    float ms = 0;
    const auto forbidden = [&](acl::aclError actual, std::string_view what) {
      a.refused(actual, code::rt_feature_not_support, Reason::shared_event, what);
    };
    forbidden(api().aclrtQueryEventStatus(event, &status), "query");
    forbidden(api().aclrtResetEvent(event, nullptr), "reset");
    forbidden(api().aclrtEventElapsedTime(&ms, event, plain), "elapsed");
    forbidden(api().aclrtEventElapsedTime(&ms, plain, event), "elapsed the other way round");
    Handle none{};
    a.refused(api().aclrtIpcGetEventHandle(plain, &none.handle), code::rt_param_invalid, Reason::shared_event,
              "a handle of an event of this process");
    a.refused(api().aclrtIpcGetEventHandle(nullptr, &none.handle), code::invalid_param, Reason::bad_argument, "null");
    a.refused(api().aclrtIpcGetEventHandle(event, nullptr), code::invalid_param, Reason::bad_argument, "null");
    a.refused(api().aclrtIpcOpenEventHandle(handle.handle, nullptr), code::invalid_param, Reason::bad_argument, "null");
    a.open_fails(handle, Reason::own_key, "its own");
    a.open_fails(none, Reason::unknown_key, "nothing");
    for (const std::size_t at : {0U, 10U, 30U, 58U, 63U}) {
      Handle damaged = handle;
      damaged.handle.reserved[at] ^= 1;
      acl::aclrtEvent made = nullptr;
      me.expect(api().aclrtIpcOpenEventHandle(damaged.handle, &made) == code::rt_drv_internal, "a damaged handle");
    }
    me.send("B", handle);
    me.pause_until("B", "done");
  });
  story.actor("B", [](Actor& me) {
    const EventProcess b(me);
    const acl::aclrtEvent event = b.open(me.receive<Handle>("A"));
    Handle handle{};
    acl::aclrtEventRecordedStatus status = -1;
    b.refused(api().aclrtIpcGetEventHandle(event, &handle.handle), code::rt_drv_internal, Reason::not_the_exporter,
              "a handle of an opened one");
    b.refused(api().aclrtQueryEventStatus(event, &status), code::rt_feature_not_support, Reason::shared_event,
              "B asks");
    me.step("done");
  });
  story.run();
}

TEST_CASE("products without events between processes say so") {
  Story story;
  story.actor("A", [](Actor& me) {
    const EventProcess a(me, {{"PROFILE", "310p"}});
    acl::aclrtEvent event = nullptr;
    a.refused(api().aclrtCreateEventExWithFlag(&event, acl::event_flag::ipc), code::rt_feature_not_support,
              Reason::unsupported, "create");
    a.refused(api().aclrtIpcOpenEventHandle({}, &event), code::rt_feature_not_support, Reason::unsupported, "open");
  });
  story.run();
}

TEST_CASE("an event outlives its creator for who has it: B, killed A's event in hand, records and waits") {
  Story story;
  story.actor("A", [](Actor& me) {
    const EventProcess a(me);
    me.send("B", a.handle_of(a.create()));
    me.pause_until("B", "never");
  });
  story.actor("B", [](Actor& me) {
    const EventProcess b(me);
    const Handle handle = me.receive<Handle>("A");
    const acl::aclrtEvent event = b.open(handle);
    me.step("opened");
    me.pause_until_ended("A");
    b.succeeds(api().aclrtRecordEvent(event, nullptr), "B records");
    b.succeeds(api().aclrtSynchronizeEvent(event), "and waits");
    b.open_fails(handle, Reason::exporter_gone, "opened once more");
    b.succeeds(api().aclrtDestroyEvent(event), "ended");
  });
  story.kill("A", at("B", "opened"));
  story.run();
}

TEST_CASE("a word of shared memory is a signal: B's stream waits for the value that A's stream writes") {
  Story story;
  story.actor("A", [](Actor& me) {
    const EventProcess a(me);
    void* memory = a.allocate();
    const Key key = a.export_key(memory, open_to_all);
    me.send("B", key);
    me.pause_until("B", "waits");
    host::delay_task(acl::Entry::aclrtMemsetAsync, 100);
    char* const data = static_cast<char*>(memory) + 64;
    a.succeeds(api().aclrtMemsetAsync(data, 64, 'x', 64, nullptr), "slow data");
    a.succeeds(api().aclrtValueWrite(memory, 7, 0, nullptr), "and its number");
    a.succeeds(api().aclrtSynchronizeStream(nullptr), "are written");
    me.pause_until("B", "closed");
    a.close(key);
    a.free(memory);
  });
  story.actor("B", [](Actor& me) {
    const EventProcess b(me);
    const Key key = me.receive<Key>("A");
    char* const memory = static_cast<char*>(b.import_key(key));
    const acl::aclrtStream stream = b.stream();
    namespace wait = acl::value_wait;
    b.succeeds(api().aclrtValueWait(memory, 0, wait::equal, stream), "0 is there");
    b.succeeds(api().aclrtValueWait(memory, 0, wait::at_least, stream), "and at least 0");
    b.succeeds(api().aclrtValueWait(memory, 0, wait::nor, stream), "and a bit in neither");
    b.succeeds(api().aclrtSynchronizeStream(stream), "which are waited for no longer");
    b.succeeds(api().aclrtValueWait(memory, 5, wait::at_least, stream), "5 or more");
    b.succeeds(api().aclrtValueWait(memory, 2, wait::common_bits, stream), "the second bit");
    b.succeeds(api().aclrtValueWait(memory, 7, wait::equal, stream), "7");
    me.expect(!b.done(stream), "are not there yet");
    b.refused(api().aclrtIpcMemClose(key.bytes), code::rt_drv_internal, Reason::in_use,
              "the stream uses the word (R5)");
    me.step("waits");
    b.succeeds(api().aclrtSynchronizeStream(stream), "now they are");
    me.expect_equal(b.peek(memory + 127), 'x', "and so is what was written before");
    const auto refused_word = [&](void* at, std::uint32_t flag, acl::aclError expected, Reason reason) {
      b.refused(api().aclrtValueWait(at, 1, flag, stream), expected, reason, "a wait");
    };
    refused_word(nullptr, 0, code::invalid_param, Reason::bad_argument);
    refused_word(memory + 4, 0, code::rt_addr_unaligned, Reason::bad_argument);
    refused_word(memory, 4, code::rt_param_invalid, Reason::bad_argument);
    refused_word(memory + size, 0, code::rt_drv_internal, Reason::not_device_memory);
    std::uint64_t host_word = 0;
    refused_word(&host_word, 0, code::rt_param_invalid, Reason::not_device_memory);
    b.refused(api().aclrtValueWrite(memory, 1, 1, stream), code::rt_param_invalid, Reason::bad_argument, "a flag");
    b.close(key);
    me.step("closed");
  });
  story.run();
}

TEST_CASE("R20 a stream that waits for a value of memory whose exporter is killed fails, and goes on") {
  Story story;
  story.actor("A", [](Actor& me) {
    const EventProcess a(me);
    me.send("B", a.export_key(a.allocate(), open_to_all));
    me.pause_until("B", "never");
  });
  story.actor("B", [](Actor& me) {
    const EventProcess b(me);
    const Key key = me.receive<Key>("A");
    void* const memory = b.import_key(key);
    static std::atomic<bool> ran{false};
    b.succeeds(api().aclrtValueWait(memory, 1, acl::value_wait::equal, nullptr), "B waits");
    b.succeeds(host::launch(
                   nullptr, [](void*) { ran = true; }, nullptr),
               "and goes on then");
    me.step("waits");
    b.refused(api().aclrtSynchronizeStream(nullptr), code::rt_drv_internal, Reason::exporter_gone, "A is gone");
    me.expect(ran, "the stream went on");
    b.close(key);
  });
  story.kill("A", at("B", "waits"));
  story.run();
}
