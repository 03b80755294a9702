// SPDX-License-Identifier: Apache-2.0
// The rules of how long an export and its imports live, and of who closes what (docs/rules.md), each broken by number.
#include "key_rules.hpp"
#include "support/soon.hpp"

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

using namespace devshare;
using namespace devshare::test;

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
