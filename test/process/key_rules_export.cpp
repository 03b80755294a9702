// SPDX-License-Identifier: Apache-2.0
// The rules of exporting and admitting (docs/rules.md), each broken by number: what the typed layer answers, with its
// kind, its ACL code and the host runtime's reason; and where the types let nobody break a rule, what the call itself
// answers. On the products that differ. R15 is in key_identity.cpp.
#include "key_rules.hpp"

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

using namespace devshare;
using namespace devshare::test;

namespace {

// 40 pids, and something that is shared, by each mechanism.
template <class Part>
void alone_with_pids(Part part) {
  tell_of_one("a2", [&](const Party& a) {
    std::vector<BarePid> pids;
    for (std::int32_t i = 0; i < 40; ++i) pids.push_back(BarePid::from_peer_message((1 << 23) + i));
    auto key = a.me.must(export_key(a.allocate(4 * KiB)), "A exports");
    part(a, pids, key, acl::Entry::aclrtIpcMemSetImportPid);
    auto v1_token = a.me.must(export_handle<v1>(a.map(4 * KiB)), "A exports");
    part(a, pids, v1_token, acl::Entry::aclrtMemSetPidToShareableHandle);
    auto v2_token = a.me.must(export_handle<v2>(a.map(4 * KiB)), "A exports");
    part(a, pids, v2_token, acl::Entry::aclrtMemSetPidToShareableHandleV2);
  });
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

TEST_CASE("R16 of many pids the first ones are admitted where a later call is refused, and the error says how many") {
  alone_with_pids([](const Party& a, const auto& pids, auto& shared, acl::Entry call) {
    host::fail(call, 2, code::rt_drv_internal);
    const auto refused = shared.admit(pids);
    if (!a.me.expect(!refused, "the second call is refused")) return;
    const Detail detail = refused.error().detail();
    a.me.expect_equal(detail.needed, pids.size(), "of all that were named");
    a.me.expect_equal(detail.available, std::uint64_t{31}, "31 are admitted");
    a.me.expect_equal(detail.pid, pids[31].to_message(), "and this is the next");
    a.me.expect(refused.error().acl_code() == code::rt_drv_internal && refused.error().entry() == call, "by that call");

    host::fail(call, 1, code::rt_drv_internal);
    const auto none = shared.admit(pids);
    a.me.expect(!none && none.error().detail().available == 0, "where the first call is refused, none is");
    a.me.must(shared.admit(std::span(pids).subspan(31)), "the rest can be admitted");
    a.me.must(shared.admit(pids), "and so can all of them again");
  });
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
