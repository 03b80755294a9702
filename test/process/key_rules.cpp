// SPDX-License-Identifier: Apache-2.0
// The rules of sharing by key (docs/rules.md), each broken by number: what the typed layer answers, with its kind, its
// ACL code and the host runtime's reason; and where the types let nobody break a rule, what the call itself answers.
// On the products that differ. R15 is in key_identity.cpp.
#include "support/sharing.hpp"
#include "support/soon.hpp"

#include <array>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

using namespace devshare;
using namespace devshare::test;

namespace {

constexpr std::size_t KiB = 1024;
constexpr std::size_t MiB = 1024 * KiB;

constexpr std::array products{"a2", "310p", "950"};

// On 310P memory crosses devices only when it was allocated so (R43); elsewhere it makes no difference.
constexpr Placement for_peers{.peer_to_peer = true};

using Part = std::function<void(const Party&)>;

// A story of A and B on one product, B on a device of its own or on A's.
void tell(std::string_view product, std::int32_t device_of_b, const Part& part_of_a, const Part& part_of_b) {
  INFO("on " << product);
  Story story;
  story.actor("A", [&](Actor& me) { part_of_a(Party(me, 0, {{"PROFILE", product}})); });
  story.actor("B", [&](Actor& me) { part_of_b(Party(me, device_of_b, {{"PROFILE", product}})); });
  story.run();
}

void tell_of_one(std::string_view product, const Part& part) {
  INFO("on " << product);
  Story story;
  story.actor("A", [&](Actor& me) { part(Party(me, 0, {{"PROFILE", product}})); });
  story.run();
}

// A exports, shares with B and waits until B is done.
Part exporter(std::size_t size = 4 * KiB) {
  return [size](const Party& a) {
    auto key = a.me.must(export_key(a.allocate(size, for_peers)), "A exports");
    a.share_with("B", key);
    a.me.pause_until("B", "done");
    a.me.must(a.me.must(std::move(key).close(), "A closes").close(), "and frees");
    a.me.expect_equal(host::bytes_in_use(0), 0U, "the device is empty");
    a.leave();
  };
}

ReceivedTicket shared_by_a(const Party& b) {
  b.introduce_myself_to("A");
  return b.ticket_from("A");
}

acl::aclError import_by_table(const Party& b, const Key& key, std::uint64_t flags, void** address) {
  b.me.must(b.device.make_current(), "the device is current");
  return api().aclrtIpcMemImportByKey(address, key.text(), flags);
}

}  // namespace

TEST_CASE("R10 only the start of a live aclrtMalloc block is exported") {
  for (const std::string_view product : products) {
    tell_of_one(product, [](const Party& a) {
      const auto export_at = [&](DeviceSpan<std::byte> range) {
        return export_key(UnownedMemory::promise_outlives(a.device, range));
      };
      DeviceMemory memory = a.allocate(3 * MiB);
      const DeviceSpan<std::byte> block = memory.bytes();
      const Refusal inside{Errc::not_exportable, code::rt_drv_internal, Reason::not_block_start};
      a.refused(export_at(block.subspan(1, 8)), inside, "one byte inside the block");
      a.refused(export_at(block.subspan(2 * MiB, 8)), inside, "at a page border inside the block");

      const Refusal elsewhere{Errc::not_exportable, code::rt_drv_internal, Reason::not_device_memory};
      std::array<std::byte, 64> local{};
      const auto host_memory = DevicePtr<std::byte>::from_address(local.data());
      a.refused(export_at({host_memory, local.size()}), elsewhere, "memory of the host");
      a.me.must(std::move(memory).close(), "the memory is freed");
      a.refused(export_at(block), elsewhere, "memory that was freed");
      a.refused(export_at({}), {Errc::closed}, "no memory at all");
      a.leave();
    });
  }
}

TEST_CASE("R10 an export ends where its block ends") {
  for (const std::string_view product : products) {
    tell_of_one(product, [](const Party& a) {
      DeviceMemory memory = a.allocate(4 * KiB);
      const DeviceSpan<std::byte> too_long(memory.bytes().data(), 64 * MiB);
      auto refused = export_key(UnownedMemory::promise_outlives(a.device, too_long));
      a.refused(refused, {Errc::out_of_range, code::rt_drv_internal, Reason::out_of_bounds},
                "a range that is too long");
      const Detail detail = refused.error().error().detail();
      a.me.expect(detail.needed == 64 * MiB && detail.available < 1 * MiB, "both sizes are told");
    });
  }
}

TEST_CASE("R11 a key has 65 bytes: less is refused, and the library always gives so many") {
  for (const std::string_view product : products) {
    tell_of_one(product, [](const Party& a) {
      DeviceMemory memory = a.allocate(4 * KiB);
      a.me.must(a.device.make_current(), "the device is current");
      std::array<char, 256> buffer{};
      const auto export_into = [&](std::size_t length) {
        return api().aclrtIpcMemGetExportKey(address_of(memory.bytes()), 4 * KiB, buffer.data(), length, 0);
      };
      a.call_refused(export_into(64), code::rt_param_invalid, Reason::bad_argument, "64 bytes are too few");
      a.call_succeeds(export_into(65), "65 are right");
      a.call_succeeds(api().aclrtIpcMemClose(buffer.data()), "the key is closed");
      a.call_succeeds(export_into(256), "more are tolerated");
      a.call_succeeds(api().aclrtIpcMemClose(buffer.data()), "and read as 65");
      host::record_calls(true);
      auto key = a.me.must(export_key(std::move(memory)), "the library exports");
      const std::vector<host::CallRecord> calls = host::recorded_calls();
      for (const host::CallRecord& call : calls) {
        if (call.call != acl::Entry::aclrtIpcMemGetExportKey) continue;
        a.me.expect(call.arguments.find("\"len\":65") != std::string::npos, "with 65 bytes: " + call.arguments);
      }
    });
  }
}

TEST_CASE("R12 imported and read-only memory is not exported") {
  for (const std::string_view product : products) {
    tell(product, 0, exporter(), [](const Party& b) {
      ImportedMapping mapping = b.import(shared_by_a(b));
      const auto promise = UnownedMemory::promise_outlives(b.device, mapping.bytes());
      const Refusal imported{Errc::not_exportable, code::rt_drv_internal, Reason::imported_memory};
      b.refused(export_key(UnownedMemory(promise)), imported, "what was imported");
      b.refused(export_key_unrestricted(UnownedMemory(promise)), imported, "nor to everybody");

      void* read_only = nullptr;
      b.me.must(b.device.make_current(), "the device is current");
      b.call_succeeds(api().aclrtMalloc(&read_only, 4 * KiB, acl::malloc_policy::user_space_read_only), "aclrtMalloc");
      const DeviceSpan<std::byte> block(DevicePtr<std::byte>::from_address(read_only), 4 * KiB);
      b.refused(export_key(UnownedMemory::promise_outlives(b.device, block)),
                {Errc::not_exportable, code::rt_drv_internal, Reason::read_only}, "what is read-only");
      b.call_succeeds(api().aclrtFree(read_only), "aclrtFree");
      b.me.must(std::move(mapping).close(), "B closes");
      b.me.step("done");
    });
  }
}

TEST_CASE("R13 who was not admitted cannot import, until it is") {
  for (const std::string_view product : products) {
    tell(
        product, 0,
        [](const Party& a) {
          auto key = a.me.must(export_key(a.allocate(pattern(4 * KiB))), "A exports");
          const BarePid b = a.pid_of("B");
          a.send("B", a.me.must(key.admit(BarePid::from_peer_message(1)), "another process is admitted"));
          a.me.pause_until("B", "refused");
          a.me.must(key.admit(b), "B is admitted");
          a.me.step("admitted");
          a.me.pause_until("B", "done");
        },
        [](const Party& b) {
          const ReceivedTicket ticket = shared_by_a(b);
          const auto refused = ImportedMapping::open(ticket, b.device);
          b.refused(refused, {Errc::not_authorised, code::rt_drv_internal, Reason::not_admitted},
                    "B is not on the list");
          b.me.expect_equal(refused.error().detail().pid, b.own_pid().to_message(), "the error names B's pid");
          b.has_given_everything_back();
          b.me.step("refused");
          b.me.pause_until("A", "admitted");
          const ImportedMapping mapping = b.import(ticket);  // the ticket it had
          b.me.expect(b.read(mapping.bytes()) == pattern(4 * KiB), "now B reads");
          b.me.step("done");
        });
  }
}

TEST_CASE("R13 a key that asks nobody admits nobody") {
  for (const std::string_view product : products) {
    tell_of_one(product, [](const Party& a) {
      auto key = a.me.must(export_key_unrestricted(a.allocate(4 * KiB)), "A exports to everybody");
      const Key name = key_in(a.me.must(key.ticket(), "it has a ticket"));
      a.me.must(a.device.make_current(), "the device is current");
      std::int32_t pid = 1;
      a.call_refused(api().aclrtIpcMemSetImportPid(name.text(), &pid, 1), code::rt_no_permission,
                     Reason::validation_disabled, "a pid for it");
      a.me.must(a.me.must(std::move(key).close(), "A closes").close(), "and frees");
    });
  }
}

TEST_CASE("R14 B015 the pid to admit is the bare pid: getpid() admits nobody, and the error names both") {
  for (const std::string_view product : products) {
    INFO("on " << product);
    const Switches switches{{"PROFILE", product}, {"BARE_PID_OFFSET", "100000"}};
    Story story;
    story.actor("A", [&](Actor& me) {
      const Party a(me, 0, switches);
      auto key = me.must(export_key(a.allocate(4 * KiB)), "A exports");
      const BarePid b = a.pid_of("B");
      const auto plain = BarePid::from_peer_message(static_cast<std::int32_t>(me.pid_of("B")));
      me.expect(b != plain, "the two numbers differ");
      a.send("B", me.must(key.admit(plain), "the wrong number is admitted"));
      me.pause_until("B", "refused");
      a.send("B", me.must(key.admit(b), "the right number is admitted"));
      me.pause_until("B", "done");
    });
    story.actor("B", [&](Actor& me) {
      const Party b(me, 0, switches);
      const ReceivedTicket ticket = shared_by_a(b);
      const auto refused = ImportedMapping::open(ticket, b.device);
      b.refused(refused, {Errc::not_authorised, code::rt_drv_internal, Reason::not_admitted}, "by the wrong number");
      const std::int32_t bare = b.own_pid().to_message();
      me.expect_equal(refused.error().detail().pid, bare, "the error has B's bare pid");
      const std::string text = to_string(refused.error(), true);
      me.expect(text.find(std::to_string(bare)) != std::string::npos, "and says it: " + text);
      me.step("refused");
      ImportedMapping mapping = b.import(b.ticket_from("A"));
      me.must(std::move(mapping).close(), "B closes");
      me.step("done");
    });
    story.run();
  }
}

TEST_CASE("R16 at most 31 pids a call: the library makes as many calls as it needs") {
  for (const std::string_view product : products) {
    tell_of_one(product, [](const Party& a) {
      auto key = a.me.must(export_key(a.allocate(4 * KiB)), "A exports");
      std::vector<BarePid> pids;
      std::vector<std::int32_t> numbers;
      for (std::int32_t i = 0; i < 32; ++i) {
        numbers.push_back((1 << 23) + i);
        pids.push_back(BarePid::from_peer_message(numbers.back()));
      }
      host::record_calls(true);
      const Key name = key_in(a.me.must(key.admit(pids), "32 are admitted"));
      a.me.expect_equal(calls_of(acl::Entry::aclrtIpcMemSetImportPid), 2U, "in two calls");
      a.me.must(a.device.make_current(), "the device is current");
      const auto set_pids = [&](std::size_t count) {
        return api().aclrtIpcMemSetImportPid(name.text(), numbers.data(), count);
      };
      a.call_refused(set_pids(32), code::rt_param_invalid, Reason::too_many_pids, "32 in one call");
      a.call_refused(set_pids(0), code::rt_param_invalid, Reason::bad_argument, "none in one call");
      a.call_succeeds(set_pids(31), "31 in one call");
    });
  }
}

TEST_CASE("R17 an importer cannot admit others, nor can a stranger") {
  for (const std::string_view product : products) {
    tell(product, 0, exporter(), [](const Party& b) {
      const ReceivedTicket ticket = shared_by_a(b);
      const Key key = key_in(ticket);
      b.me.must(b.device.make_current(), "the device is current");
      std::int32_t pid = b.own_pid().to_message();
      const auto admit = [&] { return api().aclrtIpcMemSetImportPid(key.text(), &pid, 1); };
      b.call_refused(admit(), code::rt_drv_internal, Reason::not_the_exporter, "before the import");
      ImportedMapping mapping = b.import(ticket);
      b.call_refused(admit(), code::rt_drv_internal, Reason::not_the_exporter, "after it");
      b.me.must(std::move(mapping).close(), "B closes");
      b.leave();
      b.me.step("done");
    });
  }
}

TEST_CASE("R18 B003 B009 a ticket of a closed key is stale, and says so at once and every time") {
  for (const std::string_view product : products) {
    tell(
        product, 0,
        [](const Party& a) {
          auto key = a.me.must(export_key(a.allocate(4 * KiB)), "A exports");
          const auto ticket = a.me.must(key.admit(a.pid_of("B")), "B is admitted");
          a.me.must(a.me.must(std::move(key).close(), "A closes").close(), "and frees");
          a.send("B", ticket);  // a ticket is a value: it outlives its key
          a.me.pause_until("B", "done");
        },
        [](const Party& b) {
          const ReceivedTicket ticket = shared_by_a(b);
          const Refusal stale{Errc::stale_token, code::rt_drv_internal, Reason::unknown_key};
          for (int i = 0; i < 3; ++i) b.refused(ImportedMapping::open(ticket, b.device), stale, "the key was closed");
          b.leave();
          b.me.step("done");
        });
  }
}

TEST_CASE("R18 R22 a ticket of freed memory is stale, although its key is still there") {
  for (const std::string_view product : products) {
    tell(
        product, 0,
        [](const Party& a) {
          DeviceMemory memory = a.allocate(4 * KiB);
          auto key = a.me.must(export_key(UnownedMemory::promise_outlives(a.device, memory.bytes())), "A exports");
          const auto ticket = a.me.must(key.admit(a.pid_of("B")), "B is admitted");
          a.me.must(std::move(memory).close(), "A breaks its promise");
          a.send("B", ticket);
          a.refused(key.admit(a.own_pid()), {Errc::stale_token, code::rt_drv_internal, Reason::unknown_key},
                    "nobody is admitted to it any more");
          a.me.pause_until("B", "done");
          a.me.must(std::move(key).close(), "the key can be closed");
          a.leave();
        },
        [](const Party& b) {
          const ReceivedTicket ticket = shared_by_a(b);
          b.refused(ImportedMapping::open(ticket, b.device),
                    {Errc::stale_token, code::rt_drv_internal, Reason::unknown_key}, "the memory was freed");
          b.leave();
          b.me.step("done");
        });
  }
}

TEST_CASE("R18 a ticket of a process that has ended says that its exporter is gone") {
  for (const std::string_view product : products) {
    tell(
        product, 0,
        [](const Party& a) {
          auto key = a.me.must(export_key(a.allocate(4 * KiB)), "A exports");
          a.share_with("B", key);
        },
        [](const Party& b) {
          const ReceivedTicket ticket = shared_by_a(b);
          b.me.pause_until_ended("A");
          const Refusal gone{Errc::exporter_gone, code::rt_drv_internal, Reason::exporter_gone};
          for (int i = 0; i < 3; ++i) b.refused(ImportedMapping::open(ticket, b.device), gone, "A has ended");
          b.leave();
        });
  }
}

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

TEST_CASE("R20 an exporter that closes first takes the memory from its importers: they are told, and can close") {
  for (const std::string_view product : products) {
    for (const std::int32_t device : {0, 1}) {
      tell(
          product, device,
          [](const Party& a) {
            auto key = a.me.must(export_key(a.allocate(4 * KiB, for_peers)), "A exports");
            a.share_with("B", key);
            a.me.pause_until("B", "imported");
            DeviceMemory memory = a.me.must(std::move(key).close(), "the close returns 0 all the same");
            a.me.step("closed");
            a.me.pause_until("B", "done");
            a.write(memory.bytes(), pattern(4 * KiB));  // A's memory is as good as ever
          },
          [&](const Party& b) {
            const ReceivedTicket ticket = shared_by_a(b);
            ImportedMapping mapping = b.import(ticket);
            b.me.must(mapping.check(), "the memory is there");
            b.me.step("imported");
            b.me.pause_until("A", "closed");
            const Refusal gone{Errc::exporter_gone, code::rt_drv_internal, Reason::exporter_gone};
            b.refused(mapping.check(), {Errc::exporter_gone}, "check() tells");
            b.refused(host::view(mapping.bytes()), {Errc::exporter_gone, 0, Reason::exporter_gone},
                      "no kernel sees it");
            if (device == 0) {
              Bytes bytes(4 * KiB);
              b.refused(copy_to_host(b.device, bytes, mapping.bytes()), gone, "no copy out of it");
              b.refused(copy_to_device(b.device, mapping.bytes(), bytes), gone, "no copy into it");
              b.refused(fill(b.device, mapping.bytes(), std::byte{1}), gone, "no fill");
            }
            b.me.must(std::move(mapping).close(), "B can close");
            b.refused(ImportedMapping::open(ticket, b.device),
                      {Errc::stale_token, code::rt_drv_internal, Reason::unknown_key}, "and not import again");
            b.leave();
            b.me.step("done");
          });
    }
  }
}

TEST_CASE("R21 an importer that ends without closing leaves nothing with the exporter") {
  for (const std::string_view product : products) {
    tell(
        product, 0,
        [](const Party& a) {
          auto key = a.me.must(export_key(a.allocate(pattern(4 * KiB))), "A exports");
          a.share_with("B", key);
          a.me.pause_until_ended("B");
          a.me.expect(soon([] { return host::counters().connections == 0; }), "B's connection is gone");
          a.me.expect(a.read(key.bytes()) == pattern(4 * KiB), "the memory is not");
          a.me.must(a.me.must(std::move(key).close(), "A closes").close(), "and frees");
          a.me.expect_equal(host::bytes_in_use(0), 0U, "the device is empty");
          a.leave();
        },
        [](const Party& b) {
          void* imported = nullptr;
          b.call_succeeds(import_by_table(b, key_in(shared_by_a(b)), 0, &imported), "B imports");
          b.me.expect_equal(host::counters().key_opens, 1U, "and never closes");
        });
  }
}

TEST_CASE("R22 the key is closed before the memory is freed, whichever way they end") {
  for (const std::string_view product : products) {
    tell_of_one(product, [](const Party& a) {
      const auto order_of = [&](const std::function<void()>& end) {
        host::record_calls(true);
        end();
        std::vector<std::string_view> order;
        for (const host::CallRecord& call : host::recorded_calls()) {
          if (call.call == acl::Entry::aclrtIpcMemClose || call.call == acl::Entry::aclrtFree) {
            order.push_back(host::entry_name(call.call));
          }
        }
        host::record_calls(false);
        return order;
      };
      const std::vector<std::string_view> right{"aclrtIpcMemClose", "aclrtFree"};
      std::optional key = a.me.must(export_key(a.allocate(4 * KiB)), "A exports");
      a.me.expect(
          order_of([&] { a.me.must(a.me.must(std::move(*key).close(), "A closes").close(), "and frees"); }) == right,
          "by close");
      key.emplace(a.me.must(export_key(a.allocate(4 * KiB)), "A exports"));
      a.me.expect(order_of([&] { key.reset(); }) == right, "by the destructor");
      key.emplace(a.me.must(export_key(a.allocate(4 * KiB)), "A exports"));
      auto other = a.me.must(export_key(a.allocate(4 * KiB)), "A exports more");
      a.me.expect(order_of([&] { *key = std::move(other); }) == right, "by assignment over it");
    });
  }
}

TEST_CASE("R22 freeing exported memory takes it from the importers") {
  for (const std::string_view product : products) {
    tell(
        product, 0,
        [](const Party& a) {
          DeviceMemory memory = a.allocate(4 * KiB);
          auto key = a.me.must(export_key(UnownedMemory::promise_outlives(a.device, memory.bytes())), "A exports");
          a.share_with("B", key);
          a.me.pause_until("B", "imported");
          a.me.must(std::move(memory).close(), "A frees with the key open: nobody stops it");
          a.me.step("freed");
          a.me.pause_until("B", "done");
          a.me.must(std::move(key).close(), "the key can still be closed");
          a.leave();
        },
        [](const Party& b) {
          ImportedMapping mapping = b.import(shared_by_a(b));
          b.me.step("imported");
          b.me.pause_until("A", "freed");
          b.refused(mapping.check(), {Errc::exporter_gone}, "B is told");
          Bytes bytes(4 * KiB);
          b.refused(copy_to_host(b.device, bytes, mapping.bytes()),
                    {Errc::exporter_gone, code::rt_drv_internal, Reason::exporter_gone}, "B reads nothing");
          b.me.must(std::move(mapping).close(), "B can close");
          b.leave();
          b.me.step("done");
        });
  }
}

TEST_CASE("R23 an importer that frees what it imported is refused, and keeps it") {
  for (const std::string_view product : products) {
    tell(product, 0, exporter(), [](const Party& b) {
      ImportedMapping mapping = b.import(shared_by_a(b));
      b.me.must(b.device.make_current(), "the device is current");
      b.call_refused(api().aclrtFree(address_of(mapping.bytes())), code::rt_param_invalid, Reason::imported_memory,
                     "aclrtFree");
      b.me.must(mapping.check(), "the memory is there");
      b.read(mapping.bytes());
      b.me.must(std::move(mapping).close(), "B closes");
      b.leave();
      b.me.step("done");
    });
  }
}

TEST_CASE("R24 as many closes as imports: the library makes one of each, one more is an error and closes nothing") {
  for (const std::string_view product : products) {
    tell(product, 0, exporter(), [&](const Party& b) {
      const ReceivedTicket ticket = shared_by_a(b);
      const Key key = key_in(ticket);
      host::record_calls(true);
      {
        std::vector<ImportedMapping> mappings;
        for (int i = 0; i < 5; ++i) mappings.push_back(b.import(ticket));
        b.me.must(mappings.front().check(), "they are open");
      }
      b.me.expect_equal(calls_of(acl::Entry::aclrtIpcMemImportByKey), 1U, "five mappings are one import");
      b.me.expect_equal(calls_of(acl::Entry::aclrtIpcMemClose), 1U, "and one close");
      b.me.must(b.device.make_current(), "the device is current");
      const acl::aclError refused = product == "950" ? code::rt_no_permission : code::rt_drv_internal;
      b.call_refused(api().aclrtIpcMemClose(key.text()), refused, Reason::not_imported, "one close more");
      ImportedMapping again = b.import(ticket);
      b.me.must(again.check(), "A's key is untouched");
      b.me.must(std::move(again).close(), "B closes");
      b.leave();
      b.me.step("done");
    });
  }
}

TEST_CASE("R25 a process imports a key on one device: on another it is refused, before the call") {
  for (const std::string_view product : products) {
    tell(product, 0, exporter(), [&](const Party& b) {
      const ReceivedTicket ticket = shared_by_a(b);
      const Device other = b.other_device(1);
      {
        ImportedMapping mapping = b.import(ticket);
        host::record_calls(true);
        b.refused(ImportedMapping::open(ticket, other), {Errc::already_imported}, "on a second device");
        b.me.expect_equal(calls_of(acl::Entry::aclrtIpcMemImportByKey), 0U, "the runtime was not asked");
        b.me.must(mapping.check(), "the first is as it was");
      }
      { const ImportedMapping moved = b.me.must(ImportedMapping::open(ticket, other), "closed there, it opens here"); }
      // Imported by somebody in this process who does not go through the library (B035).
      void* foreign = nullptr;
      b.call_succeeds(import_by_table(b, key_in(ticket), 0, &foreign), "an engine imports");
      const auto second = ImportedMapping::open(ticket, other);
      if (product == "950") {
        b.me.expect(static_cast<bool>(second), "the 950 imports anew on any device");
      } else {
        b.refused(second, {Errc::already_imported, code::rt_drv_internal, Reason::on_other_device},
                  "the runtime refuses");
      }
      b.me.must(b.device.make_current(), "the device is current");
      b.call_succeeds(api().aclrtIpcMemClose(key_in(ticket).text()), "the engine closes");
      b.me.step("done");
    });
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

TEST_CASE("a ticket is for another process: an own one is refused, before the call") {
  for (const std::string_view product : products) {
    tell_of_one(product, [](const Party& a) {
      auto key = a.me.must(export_key_unrestricted(a.allocate(4 * KiB)), "A exports to everybody");
      const auto ticket = a.me.must(key.ticket(), "it has a ticket");
      const std::vector<std::byte> message(ticket.bytes().data(), ticket.bytes().data() + ticket_size);
      const auto received = a.me.must(ReceivedTicket::decode(message), "which came back by some way");
      host::record_calls(true);
      a.refused(ImportedMapping::open(received, a.device), {Errc::self_import}, "an own ticket");
      a.me.expect_equal(host::recorded_calls().size(), 0U, "the runtime was not asked");
    });
  }
}
