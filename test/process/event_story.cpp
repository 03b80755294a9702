// SPDX-License-Identifier: Apache-2.0
// Events through the types.
#include "support/sharing.hpp"

#include <utility>

using namespace devshare;
using namespace devshare::test;

namespace {

constexpr std::size_t size = 64 * 1024;

Stream stream_of(const Party& party) { return party.me.must(Stream::create(party.device), "a stream is made"); }
Event event_of(const Party& party) { return party.me.must(Event::create(party.device), "an event is made"); }

}  // namespace

TEST_CASE("one stream waits for another by an event, and the time between two events is told") {
  Story story;
  story.actor("A", [](Actor& me) {
    const Party a(me);
    {
      DeviceMemory memory = a.allocate(size);
      DeviceMemory other = a.allocate(size);
      const Stream first = stream_of(a);
      const Stream second = stream_of(a);
      const Event start = event_of(a);
      const Event filled = event_of(a);
      me.expect(!me.must(filled.happened(), "asked"), "nothing has happened");
      a.refused(milliseconds_between(start, filled), {Errc::not_ready, code::rt_param_invalid, Reason::not_happened},
                "no time yet");
      host::delay_task(acl::Entry::aclrtMemsetAsync, 100);
      me.must(start.record(first), "the start is recorded");
      me.must(fill(first, memory.bytes(), std::byte{7}), "a slow fill");
      me.must(filled.record(first), "and its end");
      a.refused(filled.synchronize(Deadline::now()), {Errc::timed_out, code::rt_event_sync_timeout, Reason::timed_out},
                "it has not happened yet");
      me.must(filled.hold_up(second), "the second stream waits");
      me.must(copy_on_device(second, other.bytes(), memory.bytes()), "before it copies");
      me.must(second.synchronize(), "which is done");
      me.expect(a.read(other.bytes()) == Bytes(size, std::byte{7}), "after the fill");
      me.must(filled.synchronize(), "the event has happened");
      me.expect(me.must(filled.happened(), "asked"), "and says so");
      me.expect(me.must(milliseconds_between(start, filled), "the time is there") >= 100, "it took its time");
      me.must(StreamRef(second).synchronize(), "again");
    }
    a.leave();
  });
  story.run();
}

TEST_CASE("events and streams of two devices do not meet, and objects that are none any more say so") {
  Story story;
  story.actor("A", [](Actor& me) {
    const Party a(me, 0);
    {
      const Device other = a.other_device(1);
      const Stream there = me.must(Stream::create(other), "a stream on the other device");
      Event event = event_of(a);
      const Refusal mixed{Errc::wrong_device, code::rt_stream_context, Reason::other_device};
      a.refused(event.record(there), mixed, "recorded on the other device");
      a.refused(event.hold_up(there), mixed, "waited for there");
      me.expect(event.device() == a.device, "it is where it was made");
      Event moved = std::move(event);
      a.refused(event.record(StreamRef::default_of(a.device)), {Errc::closed}, "moved from");   // NOLINT
      a.refused(event.hold_up(StreamRef::default_of(a.device)), {Errc::closed}, "moved from");  // NOLINT
      a.refused(event.synchronize(), {Errc::closed}, "moved from");                             // NOLINT
      a.refused(event.happened(), {Errc::closed}, "moved from");                                // NOLINT
      a.refused(milliseconds_between(event, moved), {Errc::closed}, "moved from");              // NOLINT
      a.refused(milliseconds_between(moved, event), {Errc::closed}, "moved from");              // NOLINT
      me.must(std::move(moved).close(), "closed");
    }
    a.leave();
  });
  story.run();
}
