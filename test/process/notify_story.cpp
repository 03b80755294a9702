// SPDX-License-Identifier: Apache-2.0
// Notifies between processes through the types, and what their tickets refuse.
#include "support/sharing.hpp"

#include <algorithm>
#include <utility>

using namespace devshare;
using namespace devshare::test;

namespace {

constexpr std::size_t size = 64 * 1024;

Stream stream_of(const Party& party) { return party.me.must(Stream::create(party.device), "a stream is made"); }
SharedNotify notify_of(const Party& party) {
  return party.me.must(SharedNotify::create(party.device), "a notify is made");
}
void admit(const Party& party, const SharedNotify& notify, std::string_view importer) {
  const NotifyTicket ticket = party.me.must(notify.admit(party.pid_of(importer)), "the importer is admitted");
  party.me.send_bytes(importer, ticket.data(), NotifyTicket::size());
}
ReceivedNotifyTicket ticket_from(const Party& party, std::string_view exporter) {
  return party.me.must(ReceivedNotifyTicket::decode(party.me.receive_bytes(exporter)), "the ticket arrives whole");
}

}  // namespace

TEST_CASE("A's stream copies what B's stream has written, when B's notify says so, and no host waits in between") {
  Story story;
  story.actor("A", [](Actor& me) {
    const Party a(me);
    {
      auto key = me.must(export_key(a.allocate(size)), "A exports memory");
      DeviceMemory copy = a.allocate(size);
      SharedNotify written = notify_of(a);
      const Stream stream = stream_of(a);
      a.share_with("B", key);
      admit(a, written, "B");
      me.must(written.hold_up(stream), "the stream waits");
      me.must(copy_on_device(stream, copy.bytes(), key.bytes()), "and copies then");
      me.expect(!me.must(stream.idle(), "asked"), "not yet");
      me.step("waits");
      me.must(stream.synchronize(), "B has written");
      me.expect(a.read(copy.bytes()) == Bytes(size, std::byte{9}), "and all of it is there");
      me.pause_until("B", "closed");

      // What nobody took may be taken back, and a wait may have a limit.
      me.must(written.record(stream), "A records it itself");
      me.must(stream.synchronize(), "done");
      me.must(written.reset(), "and takes it back");
      me.must(written.hold_up_within(stream, 1), "so that a wait");
      a.refused(stream.synchronize(), {Errc::timed_out, code::rt_wait_timeout, Reason::timed_out},
                "comes to its limit");
      me.must(std::move(written).close(), "the notify ends");
      me.must(me.must(std::move(key).close(), "closed").close(), "freed");
    }
    a.leave();
  });
  story.actor("B", [](Actor& me) {
    const Party b(me);
    {
      b.introduce_myself_to("A");
      ImportedMapping mapping = b.import(b.ticket_from("A"));
      b.introduce_myself_to("A");
      const ReceivedNotifyTicket ticket = ticket_from(b, "A");
      ImportedNotify written = me.must(ImportedNotify::open(ticket, b.device), "the notify is imported");
      const Stream stream = stream_of(b);
      me.pause_until("A", "waits");
      host::delay_task(acl::Entry::aclrtMemsetAsync, 100);
      me.must(fill(stream, mapping.bytes(), std::byte{9}), "a slow fill");
      me.must(written.record(stream), "and then the notify");
      me.must(stream.synchronize(), "all is done");
      me.must(std::move(written).close(), "the import ends");
      me.must(std::move(mapping).close(), "closed");
    }
    b.leave();
    me.step("closed");
  });
  story.run();
}

TEST_CASE("a notify ticket is refused when it is damaged, another's, this process's own, or stale") {
  Story story;
  story.actor("A", [](Actor& me) {
    const Party a(me);
    SharedNotify notify = notify_of(a);
    SharedNotify other = notify_of(a);
    admit(a, notify, "B");
    admit(a, other, "B");
    // By the bytes of its own ticket, as if they had come from somewhere.
    const NotifyTicket own = me.must(notify.admit(BarePid::from_peer_message(1)), "somebody is admitted");
    const auto received = me.must(ReceivedNotifyTicket::decode({own.data(), NotifyTicket::size()}), "decoded");
    a.refused(ImportedNotify::open(received, a.device), {Errc::self_import}, "its own");
    me.pause_until("B", "imported");
    me.must(std::move(notify).close(), "A ends it");
    me.step("ended");
    me.pause_until("B", "done");
    SharedNotify moved = std::move(other);
    a.refused(other.admit(a.own_pid()), {Errc::closed}, "moved from");                        // NOLINT
    a.refused(other.record(StreamRef::default_of(a.device)), {Errc::closed}, "moved from");   // NOLINT
    a.refused(other.hold_up(StreamRef::default_of(a.device)), {Errc::closed}, "moved from");  // NOLINT
    a.refused(other.reset(), {Errc::closed}, "moved from");                                   // NOLINT
    me.must(std::move(moved).close(), "closed");
    a.leave();
  });
  story.actor("B", [](Actor& me) {
    const Party b(me);
    b.introduce_myself_to("A");
    const Bytes bytes = me.receive_bytes("A");
    b.introduce_myself_to("A");
    const Bytes other = me.receive_bytes("A");
    me.expect_equal(bytes.size(), sync_ticket_size, "a ticket is as long as it says");
    const auto decode = [](const Bytes& from) { return ReceivedNotifyTicket::decode(from); };
    bool all_refused = true;
    for (std::size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
      Bytes damaged = bytes;
      damaged[bit / 8] ^= std::byte{1} << (bit % 8);
      all_refused = all_refused && !decode(damaged);
    }
    me.expect(all_refused, "every damaged bit is found");
    for (const std::size_t length : {std::size_t{0}, bytes.size() - 1}) {
      b.refused(decode(Bytes(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(length))),
                {Errc::malformed_token}, "too short");
    }
    Bytes longer = bytes;
    longer.push_back(std::byte{0});
    b.refused(decode(longer), {Errc::malformed_token}, "too long");
    b.refused(ReceivedTicket::decode(bytes), {Errc::malformed_token}, "a ticket of memory it is not");
    Bytes swapped = bytes;
    std::swap(swapped[4], swapped[5]);
    b.refused(decode(swapped), {Errc::version_mismatch}, "of another byte order");
    Bytes newer = bytes;
    newer[6] = std::byte{2};
    b.refused(decode(newer), {Errc::version_mismatch}, "of another version");

    ImportedNotify imported = me.must(ImportedNotify::open(me.must(decode(bytes), "decoded"), b.device), "imported");
    me.step("imported");
    me.pause_until("A", "ended");
    b.refused(ImportedNotify::open(*decode(bytes), b.device),
              {Errc::stale_token, code::rt_drv_internal, Reason::unknown_key}, "its creator has ended it");
    me.must(imported.record(StreamRef::default_of(b.device)), "what is imported may be recorded");
    me.must(StreamRef::default_of(b.device).synchronize(), "to no effect");
    me.must(std::move(imported).close(), "and ends here");
    (void)other;
    b.leave();
    me.step("done");
  });
  story.run();
}
