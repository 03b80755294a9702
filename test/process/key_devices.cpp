// SPDX-License-Identifier: Apache-2.0
// Sharing by key across devices, as a program does it: numbers that differ between processes, peer access by flag and
// by grant. What goes wrong is in key_rules_devices.cpp.
#include "support/sharing.hpp"

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

using namespace devshare;
using namespace devshare::test;

namespace {

constexpr std::size_t KiB = 1024;
constexpr std::size_t MiB = 1024 * KiB;

std::uint64_t on_both_devices() { return host::bytes_in_use(0) + host::bytes_in_use(1); }

}  // namespace

TEST_CASE("A shares memory with B across two devices: no copies for B (R42), but all that a kernel does") {
  constexpr std::size_t size = 3 * MiB + 5;
  Story story;
  story.actor("A", [&](Actor& me) {
    const Party a(me, 0);
    auto key = me.must(export_key(a.allocate(pattern(size, 1))), "A exports");
    a.share_with("B", key);
    me.pause_until("B", "written");
    me.expect(a.read(key.bytes()) == pattern(size, 2), "A sees what B's kernel wrote");
    me.expect(host::bytes_in_use(0) >= size && host::bytes_in_use(1) == 0, "the memory is on A's device alone");
    me.pause_until("B", "closed");
    me.must(me.must(std::move(key).close(), "A closes").close(), "and frees");
    me.expect_equal(on_both_devices(), 0U, "the devices are empty");
    a.leave();
  });
  story.actor("B", [&](Actor& me) {
    const Party b(me, 1);
    b.introduce_myself_to("A");
    const ReceivedTicket ticket = b.ticket_from("A");
    me.expect_equal(ticket.owner_device(), 0, "the ticket names A's device");
    ImportedMapping mapping = b.import(ticket);
    me.expect(mapping.device() == b.device, "the import is on B's device");
    const Refusal forbidden{Errc::cross_device_copy};
    Bytes bytes(size);
    b.refused(copy_to_host(b.device, bytes, mapping.bytes()), forbidden, "no copy to the host");
    b.refused(copy_to_device(b.device, mapping.bytes(), bytes), forbidden, "no copy from the host");
    const std::span<std::byte> seen = b.view(mapping.bytes());
    me.expect(Bytes(seen.begin(), seen.end()) == pattern(size, 1), "a kernel of B sees what A wrote");
    const Bytes written = pattern(size, 2);
    std::copy(written.begin(), written.end(), seen.begin());
    me.step("written");
    me.must(std::move(mapping).close(), "B closes");
    b.leave();
    me.step("closed");
  });
  story.run();
}

TEST_CASE("devices are what each process calls them: a ticket finds its device under any number, or under none") {
  constexpr std::string_view visible = "ASCEND_RT_VISIBLE_DEVICES";
  Story story;
  story.actor("A", [&](Actor& me) {
    const Party a(me, 0, {{visible, "1"}});  // its device 0 is the machine's device 1
    auto key = me.must(export_key(a.allocate(pattern(4 * KiB))), "A exports");
    a.share_with("B", key);
    a.share_with("C", key);
    me.expect(host::bytes_in_use(1) != 0 && host::bytes_in_use(0) == 0, "the memory is on the machine's device 1");
    me.pause_until("B", "closed");
    me.pause_until("C", "closed");
  });
  story.actor("B", [&](Actor& me) {
    const Party b(me, 1);  // sees both
    b.introduce_myself_to("A");
    const ReceivedTicket ticket = b.ticket_from("A");
    me.expect_equal(ticket.owner_device(), 1, "the ticket has the machine's number");
    const Device other = b.other_device(0);
    {
      const ImportedMapping mapping = b.import(ticket);
      me.expect(b.read(mapping.bytes()) == pattern(4 * KiB), "to B it is its device 1: copies are free");
    }
    ImportedMapping mapping = me.must(
        ImportedMapping::open(ticket, other, me.must(PeerAccess::both_ways(other, b.device), "access")), "by grant");
    Bytes bytes(4 * KiB);
    b.refused(copy_to_host(other, bytes, mapping.bytes()), {Errc::cross_device_copy}, "not so from device 0 (R42)");
    me.must(std::move(mapping).close(), "B closes");
    b.leave();
    me.step("closed");
  });
  story.actor("C", [&](Actor& me) {
    const Party c(me, 0, {{visible, "0"}});  // does not see A's device
    c.introduce_myself_to("A");
    ImportedMapping mapping = c.import(c.ticket_from("A"));
    Bytes bytes(4 * KiB);
    c.refused(copy_to_host(c.device, bytes, mapping.bytes()), {Errc::cross_device_copy},
              "C's device 0 is not A's device 0 (R42)");
    const std::span<std::byte> seen = c.view(mapping.bytes());
    me.expect(Bytes(seen.begin(), seen.end()) == pattern(4 * KiB), "a kernel reads");
    me.must(std::move(mapping).close(), "C closes");
    c.leave();
    me.step("closed");
  });
  story.run();
}

TEST_CASE("an import with the importer's own PeerAccess enables nothing, and keeps the access until it is closed") {
  Story story;
  story.actor("A", [](Actor& me) {
    const Party a(me);
    auto key = me.must(export_key(a.allocate(pattern(4 * KiB))), "A exports");
    a.share_with("B", key);
    me.pause_until("B", "closed");
  });
  story.actor("B", [](Actor& me) {
    const Party b(me, 1);
    const Device owner = b.other_device(0);
    b.introduce_myself_to("A");
    const ReceivedTicket ticket = b.ticket_from("A");
    PeerAccess access = me.must(PeerAccess::both_ways(b.device, owner), "the devices may reach each other");
    me.expect_equal(host::counters().peer_grants, 2U, "by one grant each way");
    host::record_calls(true);
    ImportedMapping mapping = me.must(ImportedMapping::open(ticket, b.device, std::move(access)), "B imports with it");
    for (const host::CallRecord& call : host::recorded_calls()) {
      if (call.call != acl::Entry::aclrtIpcMemImportByKey) continue;
      me.expect(call.arguments.find("\"flags\":0") != std::string::npos, "without the flag: " + call.arguments);
    }
    me.expect_equal(calls_of(acl::Entry::aclrtIpcMemImportByKey), 1U, "there was one import");
    me.expect_equal(calls_of(acl::Entry::aclrtDeviceEnablePeerAccess), 0U, "and nothing was enabled for it");
    host::record_calls(false);
    const std::span<std::byte> seen = b.view(mapping.bytes());
    me.expect(Bytes(seen.begin(), seen.end()) == pattern(4 * KiB), "B's kernel reads");
    me.expect_equal(host::counters().peer_grants, 2U, "the mapping keeps the grant");
    me.must(std::move(mapping).close(), "B closes");
    me.expect_equal(host::counters().peer_grants, 0U, "the grant ends with it");
    b.leave();
    me.step("closed");
  });
  story.run();
}

TEST_CASE("a PeerAccess that does not join the two devices is a peer_mismatch, before any call", "[any library]") {
  constexpr Refusal mismatch{Errc::peer_mismatch};
  Story story;
  story.actor("A", [](Actor& me) {
    const Party a(me, 0, {{"DEVICES", "3"}});
    auto key = me.must(export_key(a.allocate(4 * KiB)), "A exports");
    a.share_with("B", key);
    me.pause_until("B", "done");
  });
  story.actor("B", [&](Actor& me) {
    const Party b(me, 1, {{"DEVICES", "3"}});
    const Device owner = b.other_device(0);
    const Device third = b.other_device(2);
    b.introduce_myself_to("A");
    const ReceivedTicket ticket = b.ticket_from("A");
    const auto open = [&](const Device& device, Result<PeerAccess> access) {
      return ImportedMapping::open(ticket, device, me.must(std::move(access), "the access is enabled"));
    };
    host::record_calls(true);
    b.refused(open(b.device, PeerAccess::both_ways(b.device, third)), mismatch, "access to a third device");
    b.refused(open(b.device, PeerAccess::both_ways(owner, third)), mismatch, "access between two others");
    b.refused(open(b.device, PeerAccess::half(b.device, owner)), mismatch, "the importer's half alone (R45)");
    b.refused(open(b.device, PeerAccess::half(owner, b.device)), mismatch, "the other half alone");
    b.refused(open(owner, PeerAccess::both_ways(b.device, owner)), mismatch, "on the owner's device there is no pair");
    me.expect_equal(calls_of(acl::Entry::aclrtIpcMemImportByKey), 0U, "the runtime was not asked");
    host::record_calls(false);
    me.expect_equal(host::counters().peer_grants, 0U, "a grant ends with the refusal it met");
    ImportedMapping mapping =
        me.must(open(b.device, PeerAccess::both_ways(owner, b.device)), "the right pair, turned round");
    me.must(std::move(mapping).close(), "B closes");
    b.leave();
    me.step("done");
  });
  story.run();
}

TEST_CASE("two mappings of a key, one by flag and one by grant, end in either order") {
  Story story;
  story.actor("A", [](Actor& me) {
    const Party a(me);
    auto key = me.must(export_key(a.allocate(pattern(4 * KiB))), "A exports");
    a.share_with("B", key);
    me.pause_until("B", "done");
  });
  story.actor("B", [](Actor& me) {
    const Party b(me, 1);
    const Device owner = b.other_device(0);
    b.introduce_myself_to("A");
    const ReceivedTicket ticket = b.ticket_from("A");
    const auto by_grant = [&] {
      return me.must(ImportedMapping::open(ticket, b.device, me.must(PeerAccess::both_ways(b.device, owner), "access")),
                     "by grant");
    };
    for (const bool grant_first : {true, false}) {
      std::optional<ImportedMapping> first(grant_first ? by_grant() : b.import(ticket));
      std::optional<ImportedMapping> second(grant_first ? b.import(ticket) : by_grant());
      me.expect_equal(host::counters().key_opens, 1U, "both are one import");
      first.reset();
      me.must(second->check(), "the other is as good as before");
      const std::span<std::byte> seen = b.view(second->bytes());
      me.expect(Bytes(seen.begin(), seen.end()) == pattern(4 * KiB), "a kernel reads by it");
      second.reset();
      b.has_given_everything_back();
    }
    b.leave();
    me.step("done");
  });
  story.run();
}
