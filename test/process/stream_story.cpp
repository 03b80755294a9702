// SPDX-License-Identifier: Apache-2.0
// Streams through the types: copies in them between processes that share, what R42 and R5 say of them, and errors that
// come later.
#include "support/locked_bytes.hpp"
#include "support/reports.hpp"
#include "support/sharing.hpp"
#include "support/soon.hpp"

#include <array>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

using namespace devshare;
using namespace devshare::test;

namespace {

constexpr std::size_t size = 64 * 1024;

Stream stream_of(const Party& party, StreamOptions options = {}) {
  return party.me.must(Stream::create(party.device, options), "a stream is made");
}

const Refusal injected_dma{Errc::refused, code::rt_sys_dma, Reason::injected};

}  // namespace

TEST_CASE("work in a stream: copies both ways and a fill, in order, and no longer there after the end") {
  Story story;
  story.actor("A", [](Actor& me) {
    const Party a(me);
    {
      DeviceMemory memory = a.allocate(size);
      DeviceMemory other = a.allocate(size);
      const LockedBytes from(a, pattern(size, 1));
      const LockedBytes to(a, Bytes(size));
      Stream stream = stream_of(a, {.priority = 3});
      me.expect_equal(host::counters().streams, std::uint64_t{1}, "there is one stream");
      me.must(copy_to_device(stream, memory.bytes(), from.span()), "to the device");
      me.must(copy_on_device(stream, other.bytes(), memory.bytes()), "inside it");
      me.must(fill(stream, other.bytes().first(10), std::byte{7}), "a fill");
      me.must(copy_to_host(stream, to.span(), other.bytes()), "and back");
      me.must(stream.synchronize(), "the stream is synchronised");
      me.expect(me.must(stream.idle(), "asked"), "nothing is in it");
      Bytes expected = pattern(size, 1);
      std::fill_n(expected.begin(), 10, std::byte{7});
      me.expect(to.hold(expected), "all was done in order");

      // The device's own stream, and a stream that the engine made.
      me.must(fill(StreamRef::default_of(a.device), memory.bytes(), std::byte{1}), "in the default stream");
      acl::aclrtStream native = nullptr;
      a.call_succeeds(api().aclrtSetDevice(0), "aclrtSetDevice");
      a.call_succeeds(api().aclrtCreateStream(&native), "aclrtCreateStream");
      const StreamRef adopted = StreamRef::adopt(a.device, native);
      me.must(synchronize(a.device), "all streams of the device");
      me.must(fill(adopted, memory.bytes().first(1), std::byte{2}), "in the engine's stream");
      me.must(adopted.synchronize(std::chrono::minutes(1)), "synchronised with a limit");
      const Bytes read = a.read(memory.bytes());
      me.expect(read[0] == std::byte{2} && read[size - 1] == std::byte{1}, "both did their work");
      me.expect(adopted.native_handle() == native && adopted == StreamRef::adopt(a.device, native),
                "it is the engine's");
      a.call_succeeds(api().aclrtDestroyStream(native), "aclrtDestroyStream");
      a.refused(adopted.synchronize(), {Errc::invalid_argument, code::rt_invalid_handle, Reason::unknown_stream},
                "a stream that the engine has ended");
      me.must(std::move(stream).close(), "the stream ends");
    }
    a.leave();
  });
  story.run();
}

TEST_CASE("what a stream refuses before a call: bounds, and objects that are none any more") {
  Story story;
  story.actor("A", [](Actor& me) {
    const Party a(me);
    DeviceMemory memory = a.allocate(size);
    Stream stream = stream_of(a);
    const Bytes small(size - 1);
    Bytes large(size + 1);
    a.refused(copy_to_device(stream, memory.bytes(), large), {Errc::out_of_range}, "more than there is room");
    Bytes room(size - 1);
    a.refused(copy_to_host(stream, room, memory.bytes()), {Errc::out_of_range}, "less room than there is");
    a.refused(copy_on_device(stream, memory.bytes().first(1), memory.bytes()), {Errc::out_of_range}, "inside");
    me.must(copy_to_device(stream, memory.bytes(), small), "what fits");
    a.refused(Stream::create(a.device, {.priority = 8}),
              {Errc::invalid_argument, code::rt_param_invalid, Reason::bad_argument}, "there is no priority 8");
    Stream moved = std::move(stream);
    a.refused(stream.synchronize(), {Errc::closed}, "moved from");       // NOLINT: what it says is the test
    a.refused(stream.idle(), {Errc::closed}, "moved from");              // NOLINT
    a.refused(std::move(stream).close(), {Errc::closed}, "moved from");  // NOLINT
    me.must(std::move(moved).close(), "closed");
    const DeviceSpan<std::byte> bytes = memory.bytes();
    me.must(std::move(memory).close(), "freed");

    Stream outlives = stream_of(a);
    const StreamRef ref = outlives;
    me.must(a.runtime.finalize(), "the runtime ends");
    a.refused(ref.synchronize(), {Errc::runtime_gone}, "its stream with it");
    a.refused(fill(ref, bytes, std::byte{1}), {Errc::runtime_gone}, "and all that goes into it");
    a.refused(std::move(outlives).close(), {Errc::runtime_gone}, "nothing is left to close");
  });
  story.run();
}

TEST_CASE("B078 data is announced when its copy is done: a slow copy is waited for, a failed one is never announced") {
  Story story;
  story.actor("A", [](Actor& me) {
    const Party a(me);
    {
      auto key = me.must(export_key(a.allocate(pattern(size, 0))), "A exports");
      a.share_with("B", key);
      me.pause_until("B", "imported");
      Stream stream = stream_of(a);
      const LockedBytes fresh(a, pattern(size, 1));
      const LockedBytes lost(a, pattern(size, 2));
      const auto publish = [&]() -> Result<void> {
        DEVSHARE_CHECK(stream.synchronize());
        me.send("B", std::string("ready"));
        return {};
      };
      host::delay_task(acl::Entry::aclrtMemcpyAsync, 100);
      me.must(copy_to_device(stream, key.bytes(), fresh.span()), "enqueued");
      me.expect(!me.must(stream.idle(), "asked"), "and not done yet");
      a.refused(stream.synchronize(std::chrono::milliseconds(1)),
                {Errc::timed_out, code::rt_stream_sync_timeout, Reason::timed_out}, "nor in a millisecond");
      me.must(publish(), "announced when it is");
      me.pause_until("B", "read");
      host::fail_task(acl::Entry::aclrtMemcpyAsync, 1, code::rt_sys_dma);
      me.must(copy_to_device(stream, key.bytes(), lost.span()), "enqueued");
      a.refused(publish(), injected_dma, "the copy failed, and so does what would announce it");
      me.send("B", std::string("nothing new"));
      me.pause_until("B", "closed");
      me.must(std::move(stream).close(), "the error was told already");
      me.must(me.must(std::move(key).close(), "closed").close(), "freed");
    }
    a.leave();
  });
  story.actor("B", [](Actor& me) {
    const Party b(me);
    b.introduce_myself_to("A");
    ImportedMapping mapping = b.import(b.ticket_from("A"));
    me.step("imported");
    me.expect_equal(me.receive<std::string>("A"), std::string("ready"), "A announces");
    me.expect(b.read(mapping.bytes()) == pattern(size, 1), "and all of it is there");
    me.step("read");
    me.expect_equal(me.receive<std::string>("A"), std::string("nothing new"), "the failed copy is not announced");
    me.expect(b.read(mapping.bytes()) == pattern(size, 1), "what was announced is still what is there");
    me.must(std::move(mapping).close(), "closed");
    b.leave();
    me.step("closed");
  });
  story.run();
}

TEST_CASE("an error that nobody asked for is returned by close, and reported by the destructor") {
  Story story;
  story.actor("A", [](Actor& me) {
    const Party a(me);
    {
      DeviceMemory memory = a.allocate(size);
      const auto failing = [&] {
        Stream stream = stream_of(a);
        host::fail_task(acl::Entry::aclrtMemsetAsync, 1, code::rt_sys_dma);
        me.must(fill(stream, memory.bytes(), std::byte{1}), "enqueued");
        return stream;
      };
      a.refused(failing().close(), injected_dma, "close waits and tells");
      const Reports reports;
      { const Stream dropped = failing(); }
      me.expect(reports.heard.size() == 1 && reports.heard[0].event == DiagnosticEvent::close_failed &&
                    reports.heard[0].error.acl_code() == code::rt_sys_dma,
                "the destructor reports");
    }
    a.leave();
  });
  story.run();
}

TEST_CASE("R5 an import is not closed from under a stream") {
  const auto made = [](const Party& a) { return a.me.must(export_key(a.allocate(pattern(size))), "A exports"); };
  import_story(made, [](const Party& b, const ReceivedTicket& ticket) {
    ImportedMapping mapping = b.import(ticket);
    Stream stream = stream_of(b);
    const LockedBytes to(b, Bytes(size));
    host::delay_task(acl::Entry::aclrtMemcpyAsync, 200);
    b.me.must(copy_to_host(stream, to.span(), mapping.bytes()), "enqueued");
    b.call_succeeds(api().aclrtSetDevice(0), "aclrtSetDevice");
    b.call_refused(api().aclrtIpcMemClose(key_in(ticket).text()), code::rt_drv_internal, Reason::in_use,
                   "the stream still uses the memory");
    b.me.must(stream.synchronize(), "done");
    b.me.expect(to.hold(pattern(size)), "the bytes are A's");
    b.me.must(std::move(mapping).close(), "now it closes");
  });
}

TEST_CASE("R5 page-locked host memory is neither freed nor unregistered from under a stream") {
  constexpr std::size_t page = 4096;
  alone([](const Party& a) {
    DeviceMemory memory = a.allocate(pattern(2 * page));
    Stream stream = stream_of(a);
    a.me.must(a.device.make_current(), "the device is current");
    const auto enqueue_slow_copy = [&](const StreamRef& in, void* host, std::size_t bytes) {
      host::delay_task(acl::Entry::aclrtMemcpyAsync, 200);
      const std::span to(static_cast<std::byte*>(host), bytes);
      a.me.must(copy_to_host(in, to, memory.bytes().first(bytes)), "enqueued");
    };
    const auto is_in_use = [&](acl::aclError refused, std::string_view call) {
      a.call_refused(refused, code::rt_drv_internal, Reason::in_use, call);
    };

    void* allocated = nullptr;
    a.call_succeeds(api().aclrtMallocHost(&allocated, page), "aclrtMallocHost");
    enqueue_slow_copy(stream, allocated, page);
    is_in_use(api().aclrtFreeHost(allocated), "aclrtFreeHost");
    a.me.must(stream.synchronize(), "done");
    a.me.expect(std::memcmp(allocated, pattern(page).data(), page) == 0, "with the bytes");
    host::delay_task(acl::Entry::aclrtMemsetAsync, 200);
    a.call_succeeds(api().aclrtMemsetAsync(allocated, page, 1, page, stream.native_handle()), "and set in the stream");
    is_in_use(api().aclrtFreeHost(allocated), "aclrtFreeHost");
    a.me.must(stream.synchronize(), "done");
    a.call_succeeds(api().aclrtFreeHost(allocated), "aclrtFreeHost");

    // A range that two registrations have between them: both stay.
    alignas(page) static std::array<std::byte, 2 * page> pages;
    const std::span<std::byte> both(pages);
    HostRegistration first = a.me.must(HostRegistration::of(a.device, both.first(page)), "one page is registered");
    HostRegistration second = a.me.must(HostRegistration::of(a.device, both.last(page)), "and the next");
    enqueue_slow_copy(stream, pages.data(), 2 * page);
    auto refused = std::move(first).close();
    a.refused(refused, {Errc::in_use, code::rt_drv_internal, Reason::in_use}, "the one is in use");
    first = std::move(refused).error().take_back();
    is_in_use(api().aclrtHostUnregister(both.last(page).data()), "aclrtHostUnregister of the other");
    a.me.must(stream.synchronize(), "done");
    a.me.expect(std::memcmp(pages.data(), pattern(2 * page).data(), 2 * page) == 0, "with the bytes");
    a.me.must(std::move(first).close(), "now the one can go");
    a.me.must(std::move(second).close(), "and the other");

    // What a task has not come to when its stream is ended by force is let go of too.
    a.call_succeeds(api().aclrtMallocHost(&allocated, page), "aclrtMallocHost");
    acl::aclrtStream forced = nullptr;
    a.call_succeeds(api().aclrtCreateStream(&forced), "aclrtCreateStream");
    const StreamRef adopted = StreamRef::adopt(a.device, forced);
    host::delay_task(acl::Entry::aclrtMemsetAsync, 100);
    a.me.must(fill(adopted, memory.bytes(), std::byte{1}), "something slow");
    enqueue_slow_copy(adopted, allocated, page);
    a.call_succeeds(api().aclrtDestroyStreamForce(forced), "the stream ends");
    a.call_succeeds(api().aclrtFreeHost(allocated), "aclrtFreeHost");
  });
}

TEST_CASE("R42 in a stream: no copies between the host and another device's memory, but those inside the device") {
  Story story;
  story.actor("A", [](Actor& me) {
    const Party a(me, 0);
    auto key = me.must(export_key(a.allocate(pattern(size))), "A exports");
    a.share_with("B", key);
    me.pause_until("B", "closed");
    me.must(me.must(std::move(key).close(), "closed").close(), "freed");
    a.leave();
  });
  story.actor("B", [](Actor& me) {
    const Party b(me, 1);
    {
      b.introduce_myself_to("A");
      ImportedMapping mapping = b.import(b.ticket_from("A"));
      DeviceMemory own = b.allocate(size);
      Stream stream = stream_of(b);
      const LockedBytes bytes(b, Bytes(size));
      const Refusal forbidden{Errc::cross_device_copy};
      b.refused(copy_to_host(stream, bytes.span(), mapping.bytes()), forbidden, "not to the host");
      b.refused(copy_to_device(stream, mapping.bytes(), bytes.span()), forbidden, "not from the host");
      b.refused(copy_on_device(b.device, own.bytes(), mapping.bytes()), forbidden, "and no blocking copy");
      me.must(copy_on_device(stream, own.bytes(), mapping.bytes()), "but one in a stream");
      me.must(stream.synchronize(), "which is done");
      me.expect(b.read(own.bytes()) == pattern(size), "and right");
      // The runtime itself: the direction must be said, and the host is out.
      b.call_succeeds(api().aclrtSetDevice(1), "aclrtSetDevice");
      const auto copy = [&](acl::aclrtMemcpyKind direction, void* to) {
        return api().aclrtMemcpyAsync(to, size, address_of(mapping.bytes()), size, direction, stream.native_handle());
      };
      b.call_refused(copy(acl::memcpy_kind::automatic, address_of(own.bytes())), code::rt_feature_not_support,
                     Reason::cross_device_copy, "no direction");
      b.call_refused(copy(acl::memcpy_kind::device_to_host, bytes.span().data()), code::rt_feature_not_support,
                     Reason::cross_device_copy, "to the host");
      me.must(std::move(mapping).close(), "closed");
    }
    b.leave();
    me.step("closed");
  });
  story.run();
}

TEST_CASE(
    "R20 a copy that waits while its exporter is killed fails when its turn comes, and imports until that is told") {
  Story story;
  story.actor("A", [](Actor& me) {
    const Party a(me);
    auto key = me.must(export_key(a.allocate(pattern(size))), "A exports");
    a.share_with("B", key);
    me.pause_until("B", "closed");  // killed before
  });
  story.actor("C", [](Actor& me) {
    const Party c(me);
    auto key = me.must(export_key(c.allocate(pattern(size))), "C exports");
    c.share_with("B", key);
    me.pause_until("B", "closed");
    me.must(me.must(std::move(key).close(), "closed").close(), "freed");
    c.leave();
  });
  story.actor("B", [](Actor& me) {
    const Party b(me);
    b.introduce_myself_to("A");
    b.introduce_myself_to("C");
    ImportedMapping mapping = b.import(b.ticket_from("A"));
    const ReceivedTicket other = b.ticket_from("C");
    Stream stream = stream_of(b);
    const LockedBytes to(b, Bytes(size));
    host::delay_task(acl::Entry::aclrtMemsetAsync, 300);
    DeviceMemory own = b.allocate(size);
    me.must(fill(stream, own.bytes(), std::byte{1}), "something slow");
    me.must(copy_to_host(stream, to.span(), mapping.bytes()), "and behind it a copy of A's memory");
    me.step("enqueued");
    me.pause_until_ended("A");
    me.expect(soon([&] { return me.must(stream.idle(), "asked"); }), "the stream goes on to its end");
    b.refused(ImportedMapping::open(other, b.device),
              {Errc::refused, code::rt_drv_internal, Reason::earlier_task_failed},
              "an import while a failure is not told");
    b.refused(stream.synchronize(), {Errc::exporter_gone, code::rt_drv_internal, Reason::exporter_gone}, "it is told");
    ImportedMapping now = b.import(other);
    me.expect(b.read(now.bytes()) == pattern(size), "and imports work again");
    me.must(std::move(now).close(), "closed");
    me.must(std::move(stream).close(), "the stream ends");
    me.step("closed");
  });
  story.kill("A", at("B", "enqueued"));
  story.run();
}
