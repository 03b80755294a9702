// SPDX-License-Identifier: Apache-2.0
// The rules of sharing across devices and of peer access (docs/rules.md), each broken by number.
#include "key_rules.hpp"

#include <cstdint>
#include <string_view>
#include <utility>

using namespace devshare;
using namespace devshare::test;

TEST_CASE("R19 across devices an import without the flag needs peer access, which a grant must still be") {
  for (const std::string_view product : products) {
    tell(product, 1, exporter(), [](const Party& b) {
      const ReceivedTicket ticket = shared_by_a(b);
      void* imported = nullptr;
      b.call_refused(import_by_table(b, key_in(ticket), acl::ipc_import::plain, &imported), code::rt_drv_internal,
                     Reason::peer_access_missing, "no flag and no access");
      const Device owner = b.other_device(0);
      PeerAccess access = b.me.must(PeerAccess::both_ways(b.device, owner), "B enables");
      b.me.must(b.device.make_current(), "the device is current");
      b.call_succeeds(api().aclrtDeviceDisablePeerAccess(0), "somebody disables one way behind its back");
      b.refused(ImportedMapping::open(ticket, b.device, std::move(access)),
                {Errc::peer_access_missing, code::rt_drv_internal, Reason::peer_access_missing}, "the grant is void");
      b.has_given_everything_back();
      ImportedMapping mapping = b.import(ticket);  // by flag
      b.view(mapping.bytes());
      b.me.must(std::move(mapping).close(), "B closes");
      b.leave();
      b.me.step("done");
    });
  }
}

TEST_CASE("R19 devices without a link share nothing, by flag or by grant") {
  for (const std::string_view product : products) {
    INFO("on " << product);
    const Switches switches{{"PROFILE", product}, {"PEERS", "00/00"}};
    const Refusal impossible{Errc::peer_access_impossible, code::rt_drv_internal, Reason::peer_impossible};
    Story story;
    story.actor("A", [&](Actor& me) { exporter()(Party(me, 0, switches)); });
    story.actor("B", [&](Actor& me) {
      const Party b(me, 1, switches);
      const ReceivedTicket ticket = shared_by_a(b);
      b.refused(ImportedMapping::open(ticket, b.device), impossible, "an import by flag");
      b.refused(PeerAccess::both_ways(b.device, b.other_device(0)), impossible, "a grant");
      me.expect(!me.must(can_access_peer(b.device, b.other_device(0)), "the topology answers"), "and says no");
      b.leave();
      me.step("done");
    });
    story.run();
  }
}

TEST_CASE("R42 memory of another device takes no copies to or from the host, and no blocking copies inside a device") {
  for (const std::string_view product : products) {
    tell(product, 1, exporter(), [](const Party& b) {
      ImportedMapping mapping = b.import(shared_by_a(b));
      DeviceMemory own = b.allocate(4 * KiB);
      Bytes bytes(4 * KiB);
      const Refusal forbidden{Errc::cross_device_copy};
      host::record_calls(true);
      b.refused(copy_to_host(b.device, bytes, mapping.bytes()), forbidden, "to the host");
      b.refused(copy_to_device(b.device, mapping.bytes(), bytes), forbidden, "from the host");
      b.refused(copy_on_device(b.device, own.bytes(), mapping.bytes()), forbidden, "inside, out of it");
      b.refused(copy_on_device(b.device, mapping.bytes(), own.bytes()), forbidden, "inside, into it");
      b.refused(copy_to_host(b.device, std::span(bytes).first(1), mapping.bytes().last(1)), forbidden, "its last byte");
      b.me.expect_equal(host::recorded_calls().size(), 0U, "the runtime was not asked");
      host::record_calls(false);
      b.write(own.bytes(), bytes);  // the importer's own memory is not concerned

      namespace kind = acl::memcpy_kind;
      void* const imported = address_of(mapping.bytes());
      void* const here = address_of(own.bytes());
      b.me.must(b.device.make_current(), "the device is current");
      const auto copy = [&](void* to, const void* from, acl::aclrtMemcpyKind kind) {
        return api().aclrtMemcpy(to, 4 * KiB, from, 4 * KiB, kind);
      };
      const auto refused = [&](acl::aclError code, std::string_view sentence) {
        b.call_refused(code, code::rt_feature_not_support, Reason::cross_device_copy, sentence);
      };
      refused(copy(bytes.data(), imported, kind::device_to_host), "the call, to the host");
      refused(copy(imported, bytes.data(), kind::host_to_device), "the call, from the host");
      refused(copy(bytes.data(), imported, kind::automatic), "the call, with the direction left to it");
      refused(copy(here, imported, kind::device_to_device), "the call, inside, out of it");
      refused(copy(imported, here, kind::device_to_device), "the call, inside, into it");

      b.view(mapping.bytes())[0] = std::byte{1};  // kernels may
      b.me.must(fill(b.device, mapping.bytes().first(16), std::byte{7}), "and so may a fill, which is no copy");
      const auto seen = b.view(mapping.bytes());
      b.me.expect(seen[0] == std::byte{7} && seen[15] == std::byte{7}, "the fill is there");
      b.me.expect(seen[16] == std::byte{0}, "and goes no further");
      b.me.must(std::move(own).close(), "B frees its own");
      b.me.must(std::move(mapping).close(), "B closes");
      b.leave();
      b.me.step("done");
    });
  }
}

TEST_CASE("R42 on the exporter's device nothing of it applies") {
  for (const std::string_view product : products) {
    tell(product, 0, exporter(), [](const Party& b) {
      ImportedMapping mapping = b.import(shared_by_a(b));
      DeviceMemory own = b.allocate(4 * KiB);
      b.write(mapping.bytes(), pattern(4 * KiB, 3));
      b.me.must(copy_on_device(b.device, own.bytes(), mapping.bytes()), "a copy out of it");
      b.me.expect(b.read(own.bytes()) == pattern(4 * KiB, 3), "has the bytes");
      b.me.must(fill(b.device, own.bytes(), std::byte{9}), "a fill");
      b.me.must(copy_on_device(b.device, mapping.bytes(), own.bytes()), "a copy into it");
      b.me.expect(b.read(mapping.bytes()) == Bytes(4 * KiB, std::byte{9}), "has the bytes");
      b.me.must(std::move(own).close(), "B frees its own");
      b.me.must(std::move(mapping).close(), "B closes");
      b.leave();
      b.me.step("done");
    });
  }
}

TEST_CASE("R43 on 310P, and only there, memory crosses devices only when it was allocated for it") {
  for (const std::string_view product : products) {
    tell(
        product, 1,
        [](const Party& a) {
          auto plain = a.me.must(export_key(a.allocate(4 * KiB)), "A exports plain memory");
          auto for_others = a.me.must(export_key(a.allocate(4 * KiB, for_peers)), "and some for peers");
          const BarePid b = a.pid_of("B");
          a.send("B", a.me.must(plain.admit(b), "B is admitted to the one"));
          a.send("B", a.me.must(for_others.admit(b), "and to the other"));
          a.me.pause_until("B", "done");
        },
        [&](const Party& b) {
          b.introduce_myself_to("A");
          const ReceivedTicket plain = b.ticket_from("A");
          const ReceivedTicket for_others = b.ticket_from("A");
          if (product == "310p") {
            const Refusal missing{Errc::peer_access_missing, code::rt_drv_internal, Reason::p2p_policy_missing};
            b.refused(ImportedMapping::open(plain, b.device), missing, "plain memory, from another device");
            b.me.expect_equal(host::counters().peer_grants, 0U, "no access was enabled for nothing");
            const Device owner = b.other_device(0);
            const auto same = b.me.must(ImportedMapping::open(plain, owner), "on its own device it does not matter");
          } else {
            const ImportedMapping anywhere = b.import(plain);
            b.me.must(anywhere.check(), "plain memory will do");
          }
          ImportedMapping mapping = b.import(for_others);
          b.view(mapping.bytes())[0] = std::byte{1};
          b.me.must(std::move(mapping).close(), "B closes");
          b.leave();
          b.me.step("done");
        });
  }
}

TEST_CASE("R44 peer access takes no flags, and no device is its own peer") {
  for (const std::string_view product : products) {
    tell_of_one(product, [](const Party& a) {
      a.me.must(a.device.make_current(), "the device is current");
      a.call_refused(api().aclrtDeviceEnablePeerAccess(1, 1), code::feature_unsupported, Reason::bad_argument,
                     "flags 1");
      a.call_refused(api().aclrtDeviceEnablePeerAccess(0, 0), code::invalid_param, Reason::bad_argument, "itself");
      const Refusal impossible{Errc::peer_access_impossible};
      a.refused(PeerAccess::both_ways(a.device, a.device), impossible, "a device with itself");
      a.refused(PeerAccess::half(a.device, a.device), impossible, "half of it");
      a.refused(can_access_peer(a.device, a.device), impossible, "nor does it ask");
      a.me.expect_equal(host::counters().peer_grants, 0U, "nothing was enabled");
      a.leave();
    });
  }
}

TEST_CASE("R45 one direction has no effect; two processes may each enable their own") {
  for (const std::string_view product : products) {
    tell(
        product, 1,
        [](const Party& a) {
          auto key = a.me.must(export_key(a.allocate(4 * KiB, for_peers)), "A exports");
          a.share_with("B", key);
          a.me.pause_until("B", "half");
          const PeerAccess half = a.me.must(PeerAccess::half(a.device, a.other_device(1)), "A enables its half");
          a.me.step("the other half");
          a.me.pause_until("B", "done");
        },
        [](const Party& b) {
          const ReceivedTicket ticket = shared_by_a(b);
          const Device owner = b.other_device(0);
          const PeerAccess half = b.me.must(PeerAccess::half(b.device, owner), "B enables its half");
          std::int32_t status = -1;
          b.call_succeeds(api().aclrtDevicePeerAccessStatus(1, 0, &status), "the status is asked for");
          b.me.expect_equal(status, 0, "and is off");
          void* imported = nullptr;
          b.call_refused(import_by_table(b, key_in(ticket), acl::ipc_import::plain, &imported), code::rt_drv_internal,
                         Reason::peer_access_missing, "an import by one direction");
          b.me.step("half");
          b.me.pause_until("A", "the other half");
          b.call_succeeds(api().aclrtDevicePeerAccessStatus(1, 0, &status), "the status is asked for");
          b.me.expect_equal(status, 1, "and is on, by two processes");
          b.call_succeeds(import_by_table(b, key_in(ticket), acl::ipc_import::plain, &imported), "now B imports");
          b.call_succeeds(api().aclrtIpcMemClose(key_in(ticket).text()), "and closes");
          b.me.step("done");
        });
  }
}
