// SPDX-License-Identifier: Apache-2.0
// Events and words of memory between processes, through the types.
#include "support/sharing.hpp"
#include "support/soon.hpp"

#include <utility>

using namespace devshare;
using namespace devshare::test;

namespace {

constexpr std::size_t size = 64 * 1024;

Stream stream_of(const Party& party) { return party.me.must(Stream::create(party.device), "a stream is made"); }

}  // namespace

TEST_CASE("B's stream waits for what A's stream records, across two devices, and A's for what B's does") {
  Story story;
  story.actor("A", [](Actor& me) {
    const Party a(me, 0);
    {
      auto key = me.must(export_key(a.allocate(size)), "A exports memory");
      SharedEvent event = me.must(SharedEvent::create(a.device), "and an event");
      const Stream stream = stream_of(a);
      a.share_with("B", key);
      const EventTicket ticket = me.must(event.ticket(), "whose ticket is for whoever holds it");
      host::delay_task(acl::Entry::aclrtMemsetAsync, 300);
      me.must(fill(stream, key.bytes(), std::byte{5}), "a slow fill");
      me.must(event.record(stream), "and its end");
      a.refused(event.synchronize(Deadline::now()), {Errc::timed_out, code::rt_event_sync_timeout, Reason::timed_out},
                "which has not come yet");
      me.send_bytes("B", ticket.data(), EventTicket::size());
      me.pause_until("B", "recorded");
      const Stream waits = stream_of(a);
      me.must(event.hold_up(waits), "A's stream waits for B's recording");
      me.must(waits.synchronize(), "which comes");
      me.must(event.synchronize(), "for the host too");
      me.pause_until("B", "closed");
      SharedEvent moved = std::move(event);
      a.refused(event.record(waits), {Errc::closed}, "moved from");  // NOLINT
      a.refused(event.ticket(), {Errc::closed}, "moved from");       // NOLINT
      a.refused(event.synchronize(), {Errc::closed}, "moved from");  // NOLINT
      me.must(std::move(moved).close(), "ended");
      me.must(me.must(std::move(key).close(), "closed").close(), "freed");
    }
    a.leave();
  });
  story.actor("B", [](Actor& me) {
    const Party b(me, 1);
    {
      b.introduce_myself_to("A");
      ImportedMapping mapping = b.import(b.ticket_from("A"));
      const Bytes bytes = me.receive_bytes("A");
      const ReceivedEventTicket ticket = me.must(ReceivedEventTicket::decode(bytes), "the ticket arrives whole");
      b.refused(ReceivedNotifyTicket::decode(bytes), {Errc::malformed_token}, "it is none of a notify");
      ImportedEvent event = me.must(ImportedEvent::open(ticket, b.device), "the event is opened");
      DeviceMemory own = b.allocate(size);
      const Stream stream = stream_of(b);
      me.must(event.hold_up(stream), "B's stream waits");
      me.must(copy_on_device(stream, own.bytes(), mapping.bytes()), "and copies inside its device");
      me.must(event.record(stream), "and records");
      me.step("recorded");
      me.must(stream.synchronize(), "all is done");
      me.expect(b.read(own.bytes()) == Bytes(size, std::byte{5}), "A's fill was waited for");
      me.must(std::move(event).close(), "ended");
      me.must(std::move(mapping).close(), "closed");
    }
    b.leave();
    me.step("closed");
  });
  story.run();
}

TEST_CASE("a word of shared memory holds up B's stream until A's stream has written it") {
  Story story;
  story.actor("A", [](Actor& me) {
    const Party a(me);
    {
      auto key = me.must(export_key(a.allocate(size)), "A exports");
      a.share_with("B", key);
      me.pause_until("B", "waits");
      const Stream stream = stream_of(a);
      me.must(fill(stream, key.bytes().subspan(4096, 4096), std::byte{3}), "data");
      me.must(write_value(stream, key.bytes().as<std::uint64_t>().data(), 41), "and their number");
      me.must(stream.synchronize(), "written");
      me.pause_until("B", "closed");
      me.must(me.must(std::move(key).close(), "closed").close(), "freed");
    }
    a.leave();
  });
  story.actor("B", [](Actor& me) {
    const Party b(me);
    {
      b.introduce_myself_to("A");
      ImportedMapping mapping = b.import(b.ticket_from("A"));
      const auto word = mapping.bytes().as<std::uint64_t>().data();
      const Stream stream = stream_of(b);
      DeviceMemory own = b.allocate(4096);
      me.must(wait_for_value(stream, word, ValueIs::at_least, 40), "B's stream waits");
      me.must(copy_on_device(stream, own.bytes(), mapping.bytes().subspan(4096, 4096)), "and copies then");
      me.expect(!me.must(stream.idle(), "asked"), "not yet");
      me.step("waits");
      me.must(stream.synchronize(), "it was written");
      me.expect(b.read(own.bytes()) == Bytes(4096, std::byte{3}), "after the data");
      b.refused(wait_for_value(stream, DevicePtr<const std::uint64_t>(), ValueIs::equal, 0),
                {Errc::invalid_argument, code::invalid_param, Reason::bad_argument}, "no word");
      me.must(std::move(mapping).close(), "closed");
    }
    b.leave();
    me.step("closed");
  });
  story.run();
}
