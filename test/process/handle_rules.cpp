// SPDX-License-Identifier: Apache-2.0
// What the handle path refuses and what it keeps, through the typed layer, by the number of the rule.
#include "support/sharing.hpp"

#include "sharing/ticket_codec.hpp"

#include <string>
#include <utility>

using namespace devshare;
using namespace devshare::test;

namespace {

constexpr std::size_t KiB = 1024;
constexpr std::size_t MiB = 1024 * KiB;
const Switches a3{{"PROFILE", "a3"}};

template <class Held>
void end(Actor& me, Held held) {
  me.must(std::move(held).close(), "it ends");
}

}  // namespace

TEST_CASE("R27 a handle has one export: the same again is the same token, another is refused and gives it back") {
  alone(a3, [](const Party& a) {
    Actor& me = a.me;
    Mapping mapping = a.map(2 * MiB);
    auto first = me.must(export_handle<v2>(std::move(mapping)), "the first export");
    const auto bytes_of = [&](auto& token) {
      return me.must(ReceivedTicket::decode({me.must(token.ticket(), "a ticket").bytes().data(), ticket_size}), "reads");
    };
    mapping = me.must(std::move(first).close(), "it ends");
    me.expect_equal(host::counters().tokens_exported, 1U, "but the handle stays exported");

    const auto refused_as = [&](auto result, std::string_view sentence) {
      if (!a.refused(result, {Errc::already_exported_as}, sentence)) return;
      mapping = std::move(result).error().take_back();
    };
    refused_as(export_handle<v1>(std::move(mapping)), "as another kind");
    refused_as(export_handle<fabric>(std::move(mapping)), "as a fabric token");
    refused_as(export_handle_unrestricted<v2>(std::move(mapping)), "for everybody");
    me.expect(mapping.holds() && mapping.size() == 2 * MiB, "the mapping came back each time");

    auto again = me.must(export_handle<v2>(std::move(mapping)), "the same kind again");
    me.expect_equal(host::counters().tokens_exported, 1U, "is the export that was there");
    mapping = me.must(std::move(again).close(), "it ends");
    end(me, std::move(mapping));

    auto open = me.must(export_handle_unrestricted<v1>(a.map(2 * MiB)), "an export for everybody");
    const ReceivedTicket one = bytes_of(open);
    Mapping kept = me.must(std::move(open).close(), "it ends");
    auto reopened = me.must(export_handle_unrestricted<v1>(std::move(kept)), "and again");
    const ReceivedTicket other = bytes_of(reopened);
    me.expect(one.fields().payload == other.fields().payload && one.fields().nonce == other.fields().nonce,
              "it is the same token");
    end(me, me.must(std::move(reopened).close(), "it ends"));
  });
}

TEST_CASE("R27 R28 what this process exported it cannot import, and what others exported only once") {
  Story story;
  story.actor("A", [](Actor& me) {
    const Party a(me);
    auto token = me.must(export_handle_unrestricted<v2>(a.map(2 * MiB)), "A exports");
    const auto ticket = me.must(token.ticket(), "a ticket");
    a.send("B", ticket);
    const ReceivedTicket own =
        me.must(ReceivedTicket::decode({ticket.bytes().data(), ticket_size}), "as if it had come back by a wire");
    a.refused(ImportedMapping::open(own, a.device), {Errc::self_import}, "its own");
    a.refused(ImportedHandle::open(own, a.device), {Errc::self_import}, "nor its handle");
    me.pause_until("B", "closed");
    end(me, me.must(std::move(token).close(), "A ends"));
    a.leave();
  });
  story.actor("B", [](Actor& me) {
    const Party b(me);
    const ReceivedTicket ticket = b.ticket_from("A");
    std::uint64_t number = 0;
    std::memcpy(&number, ticket.fields().payload.data(), sizeof number);
    me.must(b.device.make_current(), "the device is current");
    // Another library of the process has it: B035.
    acl::aclrtDrvMemHandle foreign = nullptr;
    b.call_succeeds(api().aclrtMemImportFromShareableHandleV2(&number, acl::share_type::local, 0, &foreign), "imports");
    b.refused(ImportedMapping::open(ticket, b.device),
              {Errc::already_imported, acl::code::rt_drv_internal, Reason::already_imported}, "open outside devshare");
    b.call_succeeds(api().aclrtFreePhysical(foreign), "and gives it up");
    end(me, b.import(ticket));
    b.leave();
    me.step("closed");
  });
  story.run();
}

TEST_CASE("R30 R31 R41 stale, foreign and unadmitted tokens are refused, each with its reason") {
  Story story;
  story.actor("A", [](Actor& me) {
    const Party a(me, 0, a3);
    auto kept = me.must(export_handle<v1>(a.map(2 * MiB)), "A exports");
    auto gone = me.must(export_handle<v2>(a.map(2 * MiB)), "and another");
    a.pid_of("B");  // B introduced itself, and A admits somebody else
    const BarePid nobody = BarePid::from_peer_message(1);
    a.send("B", me.must(kept.admit(nobody), "the wrong process"));
    a.send("B", me.must(gone.admit(nobody), "the wrong process"));
    me.pause_until("B", "refused");
    end(me, me.must(std::move(gone).close(), "A ends one"));
    me.step("freed");
    me.pause_until("B", "done");
    end(me, me.must(std::move(kept).close(), "and the other"));
    a.leave();
  });
  story.actor("B", [](Actor& me) {
    const Party b(me, 0, a3);
    b.introduce_myself_to("A");
    const ReceivedTicket first = b.ticket_from("A");
    const ReceivedTicket second = b.ticket_from("A");
    const Refusal not_admitted{Errc::not_authorised, acl::code::rt_drv_internal, Reason::not_admitted};
    b.refused(ImportedMapping::open(first, b.device), not_admitted, "R41 B was not admitted");
    b.refused(ImportedMapping::open(second, b.device), not_admitted, "nor to the other");
    // A ticket with the kind of the other calls: its checksum is right, its kind is not.
    me.must(b.device.make_current(), "the device is current");
    std::uint64_t number = 0;
    std::memcpy(&number, first.fields().payload.data(), sizeof number);
    acl::aclrtDrvMemHandle handle = nullptr;
    b.call_refused(api().aclrtMemImportFromShareableHandleV2(&number, acl::share_type::local, 0, &handle),
                   acl::code::rt_invalid_handle, Reason::wrong_token_kind, "R31 a V1 token to V2");
    me.step("refused");
    me.pause_until("A", "freed");
    b.refused(ImportedMapping::open(second, b.device),
              {Errc::stale_token, acl::code::rt_invalid_handle, Reason::unknown_key}, "R30 the memory is gone");
    b.leave();
    me.step("done");
  });
  story.run();
}

TEST_CASE("B109 the end of an export leaves the memory, and the end of the memory leaves what was imported") {
  Story story;
  story.actor("A", [](Actor& me) {
    const Party a(me);
    auto token = me.must(export_handle<v2>(a.map(pattern(2 * MiB, 1))), "A exports");
    a.share_with("B", token);
    me.pause_until("B", "imported");
    Mapping mapping = me.must(std::move(token).close(), "the export object ends");
    me.expect(a.read(mapping.bytes()) == pattern(2 * MiB, 1), "the memory is as it was");
    a.write(mapping.bytes(), pattern(2 * MiB, 2));
    me.step("written");
    me.pause_until("B", "closed");
    end(me, std::move(mapping));
    a.leave();
  });
  story.actor("B", [](Actor& me) {
    const Party b(me);
    b.introduce_myself_to("A");
    ImportedMapping mapping = b.import(b.ticket_from("A"));
    me.step("imported");
    me.pause_until("A", "written");
    me.expect(b.read(mapping.bytes()) == pattern(2 * MiB, 2), "the import goes on");
    end(me, std::move(mapping));
    b.leave();
    me.step("closed");
  });
  story.run();
}

TEST_CASE("memory moves from key to handle only when asked to, with its bytes") {
  alone({}, [](const Party& a) {
    Mapping moved = a.me.must(rehouse(a.allocate(pattern(3 * MiB, 7))), "it is rehoused");
    a.me.expect(moved.size() == 3 * MiB && a.read(moved.bytes()) == pattern(3 * MiB, 7), "with its bytes");
    a.me.expect_equal(host::counters().allocations, 0U, "the old block is gone");
    end(a.me, std::move(moved));

    host::fail(acl::Entry::aclrtMapMem, 1, acl::code::rt_drv_internal);
    auto refused = rehouse(a.allocate(pattern(64 * KiB, 8)));
    a.refused(refused, {Errc::refused, acl::code::rt_drv_internal, Reason::injected}, "a step of it fails");
    DeviceMemory back = std::move(refused).error().take_back();
    a.me.expect(a.read(back.bytes()) == pattern(64 * KiB, 8), "and the memory is what it was");
    a.me.expect_equal(host::counters().handles, 0U, "with nothing left of the attempt");
    end(a.me, std::move(back));
  });
}

TEST_CASE("host memory is registered for a device, once, for as long as the object lives") {
  alone({}, [](const Party& a) {
    alignas(4096) static std::byte memory[8192];
    HostRegistration one = a.me.must(HostRegistration::of(a.device, memory), "it is registered");
    a.me.expect(one.on_device().size() == sizeof memory && one.host().data() == memory, "with an address for devices");
    a.refused(HostRegistration::of(a.device, memory),
              {Errc::already_registered, acl::code::host_memory_already_registered, Reason::already_mapped}, "once");
    a.refused(HostRegistration::of(a.device, std::span(memory).subspan(1)),
              {Errc::invalid_argument, acl::code::rt_param_invalid, Reason::bad_argument}, "from the start of a page");
    a.refused(HostRegistration::of(a.device, {}), {Errc::invalid_argument}, "and not nothing");
    const auto refused_once = [&](HostRegistration& registration) {
      host::fail(acl::Entry::aclrtHostUnregister, 1, acl::code::rt_drv_internal);
      auto closed = std::move(registration).close();
      a.refused(closed, {Errc::refused, acl::code::rt_drv_internal, Reason::injected}, "its end fails");
      if (!closed) registration = std::move(closed).error().take_back();
      a.me.expect(registration.host().data() == memory, "and it is what it was");
    };
    refused_once(one);
    end(a.me, std::move(one));
    HostRegistration again = a.me.must(HostRegistration::of(a.device, memory), "and again");
    refused_once(again);
    { const HostRegistration ends_by_itself = std::move(again); }
    end(a.me, a.me.must(HostRegistration::of(a.device, memory), "nothing was left of it"));
  });
}

TEST_CASE("a ticket that lies about the size of its memory opens nothing, and stands in no honest one's way") {
  Story story;
  story.actor("A", [](Actor& me) {
    const Party a(me);
    auto token = me.must(export_handle<v2>(a.map(pattern(4 * MiB))), "A exports");
    a.share_with("B", token);
    me.pause_until("B", "closed");
    end(me, me.must(std::move(token).close(), "A ends"));
    a.leave();
  });
  story.actor("B", [](Actor& me) {
    const Party b(me);
    b.introduce_myself_to("A");
    const ReceivedTicket honest = b.ticket_from("A");
    for (const std::uint64_t claimed : {2 * MiB, 8 * MiB}) {
      auto fields = honest.fields();
      fields.block_size = claimed;
      fields.slice_size = claimed;
      const TicketBytes bytes = detail::encode_ticket(fields);
      const ReceivedTicket lie = me.must(ReceivedTicket::decode({bytes.data(), bytes.size()}), "it is well formed");
      const Refusal wrong_size{Errc::out_of_range, acl::code::rt_param_invalid, Reason::out_of_bounds};
      b.refused(ImportedMapping::open(lie, b.device), wrong_size, "no mapping of it");
      b.refused(ImportedHandle::open(lie, b.device), wrong_size, "and no handle");
      b.has_given_everything_back();

      ImportedHandle handle = me.must(ImportedHandle::open(honest, b.device), "the honest one opens");
      b.refused(ImportedHandle::open(lie, b.device), {Errc::stale_token}, "the other does not share it");
      AddressReservation range = me.must(AddressReservation::reserve(b.device, 4 * MiB), "a range");
      ImportedMapping mapping = me.must(std::move(range).map(std::move(handle)), "it is mapped");
      me.expect(b.read(mapping.bytes()) == pattern(4 * MiB), "with all its bytes");
      end(me, std::move(mapping));
    }
    b.leave();
    me.step("closed");
  });
  story.run();
}
