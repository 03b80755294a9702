// SPDX-License-Identifier: Apache-2.0
// Faults from the field that the handle path owes an answer to, through the typed layer, by the number of the case.
#include "support/sanitizers.hpp"
#include "support/sharing.hpp"
#include "support/soak.hpp"

#include <barrier>
#include <chrono>
#include <string>
#include <thread>
#include <utility>
#include <vector>

using namespace devshare;
using namespace devshare::test;
using namespace std::chrono_literals;

namespace {

constexpr std::size_t KiB = 1024;
constexpr std::size_t MiB = 1024 * KiB;

template <class Held>
void end(Actor& me, Held held) {
  me.must(std::move(held).close(), "it ends");
}

}  // namespace

TEST_CASE("B019 device numbers of one process mean nothing in another: an import is on the importer's own device") {
  const auto current_device = [] {
    std::int32_t number = -1;
    return api().aclrtGetDevice(&number) == 0 ? number : -1;
  };
  Story story;
  story.actor("X", [](Actor& me) {
    const Party x(me, 1, {{"DEVICES", "4"}, {"ASCEND_RT_VISIBLE_DEVICES", "2,3"}});
    auto token = me.must(export_handle<v1>(x.map(pattern(2 * MiB))), "X exports from its device 1, card 3");
    for (const char* importer : {"I", "J", "K"}) x.share_with(importer, token);
    for (const char* importer : {"I", "J", "K"}) me.pause_until(importer, "closed");
    end(me, me.must(std::move(token).close(), "X ends"));
    x.leave();
  });
  story.actor("I", [&](Actor& me) {
    const Party i(me, 0, {{"DEVICES", "4"}, {"ASCEND_RT_VISIBLE_DEVICES", "3"}});
    i.introduce_myself_to("X");
    const ReceivedTicket ticket = i.ticket_from("X");
    me.expect_equal(ticket.owner_device(), 3, "the ticket names the card");
    ImportedMapping mapping = i.import(ticket);
    me.expect(mapping.device() == i.device, "it is on I's device 0, the same card");
    me.expect_equal(host::counters().peer_grants, 0U, "so nobody's peer access is needed");
    me.expect(i.read(mapping.bytes()) == pattern(2 * MiB), "and has X's bytes");
    end(me, std::move(mapping));
    i.leave();
    me.step("closed");
  });
  story.actor("J", [&](Actor& me) {
    const Party j(me, 0, {{"DEVICES", "4"}, {"ASCEND_RT_VISIBLE_DEVICES", "0,1"}});  // does not see card 3
    j.introduce_myself_to("X");
    const ReceivedTicket ticket = j.ticket_from("X");
    me.must(j.other_device(1).make_current(), "the thread is on device 1");
    ImportedMapping mapping = j.import(ticket);
    me.expect_equal(current_device(), 1, "and still is after an import on device 0");
    me.expect(mapping.device() == j.device, "it is on J's device 0, another card");
    me.expect(j.read(mapping.bytes()) == pattern(2 * MiB), "and has X's bytes all the same");
    end(me, std::move(mapping));
    j.call_succeeds(api().aclrtResetDevice(1), "the device is given back");
    j.leave();
    me.step("closed");
  });
  story.actor("K", [&](Actor& me) {  // does not see card 3, and its card does not reach it
    const Party k(me, 0, {{"DEVICES", "4"}, {"ASCEND_RT_VISIBLE_DEVICES", "0,1"}, {"PEERS", "0110/1010/1100/0000"}});
    k.introduce_myself_to("X");
    const ReceivedTicket ticket = k.ticket_from("X");
    me.must(k.other_device(1).make_current(), "the thread is on device 1");
    k.refused(ImportedMapping::open(ticket, k.device),
              {Errc::peer_access_impossible, acl::code::rt_drv_internal, Reason::peer_impossible}, "an import");
    me.expect_equal(current_device(), 1, "a failure leaves the thread where it was, too");
    k.call_succeeds(api().aclrtResetDevice(1), "the device is given back");
    k.leave();
    me.step("closed");
  });
  story.run();
}

TEST_CASE("B025 B031 sizes are the program's, pages are the device's: every call carries whole pages of either size") {
  struct Pages {
    const char* normal;
    const char* huge;
    std::size_t physical;
  };
  for (const auto& [normal, huge, physical] :
       {Pages{"4K", "2M", 2 * MiB}, Pages{"16K", "64K", 64 * KiB}, Pages{"64K", "64K", 64 * KiB},
        Pages{"64K", "16M", 16 * MiB}, Pages{"4K", "1G", 1024 * MiB}}) {
    CAPTURE(normal, huge);
    constexpr std::size_t asked = 6912;
    Story story;
    const Switches switches{{"NORMAL_PAGE", normal}, {"HUGE_PAGE", huge}};
    story.actor("A", [&](Actor& me) {
      const Party a(me, 0, switches);
      Mapping mapping = a.map(pattern(asked));
      me.expect_equal(mapping.size(), asked, "as much as was asked for");
      auto token = me.must(export_handle<v2>(std::move(mapping)), "A exports");
      a.share_with("B", token);
      me.pause_until("B", "closed");
      end(me, me.must(std::move(token).close(), "A ends"));
      a.leave();
    });
    story.actor("B", [&, pages = physical](Actor& me) {
      const Party b(me, 0, switches);
      b.introduce_myself_to("A");
      const ReceivedTicket ticket = b.ticket_from("A");
      me.expect(ticket.size() == asked && ticket.block_size() == pages, "both sizes are in the ticket");
      host::record_calls(true);
      ImportedMapping mapping = b.import(ticket);
      me.expect(mapping.size() == asked && b.read(mapping.bytes()) == pattern(asked), "as much as was asked for");
      std::size_t carried = 0;
      for (const host::CallRecord& call : host::recorded_calls()) {
        const bool maps = call.call == acl::Entry::aclrtMapMem || call.call == acl::Entry::aclrtMemSetAccess ||
                          call.call == acl::Entry::aclrtReserveMemAddress;
        if (!maps) continue;
        ++carried;
        // Addresses come in whole 2 MiB, whatever the pages are.
        const bool reserves = call.call == acl::Entry::aclrtReserveMemAddress;
        const std::size_t expected = reserves ? std::max(pages, 2 * MiB) : pages;
        me.expect(call.arguments.find("\"size\":" + std::to_string(expected)) != std::string::npos,
                  std::string(name_of(call.call)) + " carries whole pages: " + call.arguments);
      }
      me.expect_equal(carried, std::size_t{3}, "reserve, map and access were seen");
      host::record_calls(false);
      end(me, std::move(mapping));
      b.leave();
      me.step("closed");
    });
    story.run();
  }
}

TEST_CASE("B033 no way through the types mixes memory in a range: each is refused before or by a typed error") {
  Story story;
  story.actor("A", [](Actor& me) {
    const Party a(me);
    auto token = me.must(export_handle<v2>(a.map(2 * MiB)), "A exports");
    auto of_v1 = me.must(export_handle_unrestricted<v1>(a.map(2 * MiB)), "and by V1");
    auto of_v2 = me.must(export_handle_unrestricted<v2>(a.map(2 * MiB)), "and by V2");
    a.share_with("B", token);
    a.send("B", me.must(of_v1.ticket(), "a ticket"));
    a.send("B", me.must(of_v2.ticket(), "a ticket"));
    me.pause_until("B", "closed");
    end(me, me.must(std::move(token).close(), "A ends"));
    end(me, me.must(std::move(of_v1).close(), "A ends"));
    end(me, me.must(std::move(of_v2).close(), "A ends"));
    a.leave();
  });
  story.actor("B", [](Actor& me) {
    const Party b(me);
    b.introduce_myself_to("A");
    ImportedMapping mapping = b.import(b.ticket_from("A"));
    // Two devices in one range.
    AddressReservation range = me.must(AddressReservation::reserve(b.device, 4 * MiB), "a range");
    const auto memory_of = [&](const Device& device) {
      return me.must(PhysicalHandle::allocate(device, 2 * MiB), "memory");
    };
    Mapping own = me.must(std::move(range).map(memory_of(b.device)), "memory of one device");
    auto refused = own.extend(memory_of(b.other_device(1)));
    if (b.refused(refused, {Errc::mixed_memory}, "memory of another")) {
      end(me, std::move(refused).error().take_back());
    }
    me.must(own.extend(memory_of(b.device)), "memory of the same device");
    auto full = own.extend(memory_of(b.device));
    if (b.refused(full, {Errc::out_of_range}, "more than was reserved")) end(me, std::move(full).error().take_back());
    me.expect_equal(own.size(), 4 * MiB, "the mapping is what it was");
    end(me, std::move(own));
    // Imports of two kinds in one range.
    ImportedHandle of_v1 = me.must(ImportedHandle::open(b.ticket_from("A"), b.device), "a handle by V1");
    ImportedHandle of_v2 = me.must(ImportedHandle::open(b.ticket_from("A"), b.device), "and one by V2");
    AddressReservation for_imports = me.must(AddressReservation::reserve(b.device, 4 * MiB), "a range");
    ImportedMapping imports = me.must(std::move(for_imports).map(std::move(of_v1)), "imported memory of one kind");
    auto mixed = imports.extend(std::move(of_v2));
    const Refusal two_origins{Errc::mixed_memory, acl::code::rt_drv_internal, Reason::mixed_memory};
    if (b.refused(mixed, two_origins, "memory of the other")) {
      end(me, std::move(mixed).error().take_back());
    }
    me.expect_equal(imports.size(), 2 * MiB, "the mapping is what it was");
    end(me, std::move(imports));
    end(me, std::move(mapping));
    b.leave();
    me.step("closed");
  });
  story.run();
}

TEST_CASE("B055 an import takes the addresses of its block and no more") {
  constexpr std::size_t imports = under_sanitizer() ? 100 : 1'000;
  Story story(120s);
  story.actor("A", [](Actor& me) {
    const Party a(me, 0, {{"RAISE_NOFILE", "1"}});
    std::vector<ExportToken<v1, PhysicalHandle, Unrestricted>> tokens;
    for (std::size_t i = 0; i < imports; ++i) {
      tokens.push_back(me.must(export_handle_unrestricted<v1>(
                                   me.must(PhysicalHandle::allocate(a.device, 2 * MiB), "memory")), "A exports"));
      a.send("B", me.must(tokens.back().ticket(), "a ticket"));
    }
    me.pause_until("B", "closed");
    for (auto& token : tokens) end(me, me.must(std::move(token).close(), "A ends"));
    tokens.clear();
    a.leave();
  });
  story.actor("B", [](Actor& me) {
    const Party b(me, 0, {{"RAISE_NOFILE", "1"}});
    host::record_calls(true);
    std::vector<ImportedMapping> mappings;
    for (std::size_t i = 0; i < imports; ++i) mappings.push_back(b.import(b.ticket_from("A")));
    me.expect_equal(host::counters().reservations, std::uint64_t{imports}, "a range each");
    for (const host::CallRecord& call : host::recorded_calls()) {
      if (call.call != acl::Entry::aclrtReserveMemAddress) continue;
      me.expect(call.arguments.find("\"size\":2097152") != std::string::npos, "of 2 MiB: " + call.arguments);
    }
    host::record_calls(false);
    for (ImportedMapping& mapping : mappings) end(me, std::move(mapping));
    mappings.clear();
    b.leave();
    me.step("closed");
  });
  story.run();
}

TEST_CASE("B059 every reference has one owner: rounds of each way to hold memory fit into a device with room for two") {
  alone({{"CAPACITY", "128M"}}, [](const Party& a) {
    for (int round = 0; round < 64; ++round) {
      Mapping mapping = a.map(64 * MiB);
      PhysicalHandle second = a.me.must(PhysicalHandle::retain_from(a.device, mapping.bytes()), "retained");
      end(a.me, std::move(mapping));
      a.me.expect_equal(host::bytes_in_use(0), 64 * MiB, "the second reference holds it");
      Mapping again = a.me.must(Mapping::of(std::move(second)), "mapped from it");
      end(a.me, std::move(again));
      a.me.expect_equal(host::bytes_in_use(0), 0U, "and gives it up");
    }
  });
}

TEST_CASE("B061 B117 rounds of sleep and wake: the same addresses, the same bytes in use, and the state can be asked") {
  alone({}, [](const Party& a) {
    Actor& me = a.me;
    std::vector<Mapping> pool;
    for (std::size_t i = 0; i < 10; ++i) pool.push_back(a.map(pattern(2 * MiB, i)));
    std::vector<DevicePtr<std::byte>> addresses;
    for (const Mapping& mapping : pool) addresses.push_back(mapping.address());
    const host::Counters awake = host::counters();
    const DeviceSpan<std::byte> remembered = pool[0].bytes();  // as a graph has it
    constexpr int rounds = under_sanitizer() ? 50 : 200;
    for (int round = 0; round < rounds; ++round) {
      std::size_t released = 0;
      for (Mapping& mapping : pool) released += me.must(mapping.release_backing(), "it sleeps");
      me.expect_equal(released, 20 * MiB, "all bytes went back");
      me.expect_equal(host::bytes_in_use(0), 0U, "the device says so too");
      me.expect(pool[0].asleep() && pool[0].bytes().empty(), "asleep, and no bytes to use");
      a.refused(pool[0].check(), {Errc::no_backing}, "which can be asked");
      Bytes byte(1);
      const Refusal unmapped{Errc::invalid_argument, acl::code::rt_drv_internal, Reason::not_device_memory};
      a.refused(copy_to_host(a.device, byte, remembered.first(1)), unmapped, "nothing is read where it was");
      a.refused(copy_to_device(a.device, remembered.first(1), byte), unmapped, "nor written");
      me.expect(!host::view(remembered), "nor seen by a kernel");
      for (Mapping& mapping : pool) me.must(mapping.restore(), "it wakes");
      for (std::size_t i = 0; i < pool.size(); ++i) me.expect(pool[i].address() == addresses[i], "where it was");
      me.must(pool[0].check(), "with memory");
      me.expect(a.read(remembered.first(1)) == Bytes(1), "what was remembered is good again, and fresh");
      a.write(remembered.first(1), Bytes(1, std::byte{0x5a}));
    }
    me.expect(a.read(pool[3].bytes()) == Bytes(2 * MiB), "the bytes are not kept");
    host::Counters now = host::counters();
    now.views = awake.views;
    now.descriptors = awake.descriptors;
    me.expect(now == awake, "nothing was left by all the rounds: " + host::in_words(now));
    for (Mapping& mapping : pool) end(me, std::move(mapping));
    pool.clear();
  });
}

TEST_CASE("B076 threads that open one ticket at once use it only after access was granted") {
  const bool thorough = times_over() > 1;
  const int rounds = under_sanitizer() && !thorough ? 100 : 500;
  const std::uint32_t slowness = thorough ? 50 : 5;
  Story story(60s * times_over());
  story.actor("A", [](Actor& me) {
    const Party a(me);
    auto token = me.must(export_handle<v2>(a.map(pattern(64 * KiB))), "A exports");
    a.share_with("B", token);
    me.pause_until("B", "closed");
    end(me, me.must(std::move(token).close(), "A ends"));
    a.leave();
  });
  story.actor("B", [=](Actor& me) {
    const Party b(me, 1);  // where only aclrtMemSetAccess gives access
    b.introduce_myself_to("A");
    const ReceivedTicket ticket = b.ticket_from("A");
    host::delay(acl::Entry::aclrtMemSetAccess, slowness);
    const Bytes expected = pattern(64 * KiB);
    for (int round = 0; round < rounds; ++round) {
      host::record_calls(true);
      std::barrier together(8);
      std::vector<std::thread> threads;
      for (int i = 0; i < 8; ++i) {
        threads.emplace_back([&] {
          together.arrive_and_wait();
          auto opened = ImportedMapping::open(ticket, b.device);
          Bytes bytes(expected.size());
          const bool read = opened && copy_to_host(b.device, bytes, opened->bytes());
          together.arrive_and_wait();  // nobody closes before all have opened
          me.expect(static_cast<bool>(opened), "it opens");
          me.expect(read && bytes == expected, "and can be read at once");
        });
      }
      for (std::thread& thread : threads) thread.join();
      for (const acl::Entry once : {acl::Entry::aclrtMemImportFromShareableHandleV2, acl::Entry::aclrtMapMem,
                                    acl::Entry::aclrtMemSetAccess, acl::Entry::aclrtFreePhysical}) {
        me.expect_equal(calls_of(once), std::size_t{1}, std::string(name_of(once)) + " was called once for all");
      }
      me.expect_equal(host::counters().handles_imported, 0U, "none is left of the round");
    }
    host::record_calls(false);
    host::clear();
    b.leave();
    me.step("closed");
  });
  story.run();
}

TEST_CASE("B087 B111 nothing is chosen silently: a missing kind is an error, a choice among several is reported") {
  Story story;
  const Switches a2{{"PROFILE", "a2"}};
  story.actor("A", [&](Actor& me) {
    const Party a(me, 0, a2);
    auto wanted = export_handle<fabric>(a.map(2 * MiB));
    a.refused(wanted, {Errc::unsupported_by_runtime, acl::code::rt_feature_not_support, Reason::unsupported},
              "a2 has no fabric tokens");
    end(me, std::move(wanted).error().take_back());

    const Probe found = me.must(probe(a.device, a.other_device(1)), "what works is known beforehand");
    me.expect(found.working() == Mechanisms{Mechanism::by_key, Mechanism::v1, Mechanism::v2}, "all but fabric");
    me.expect(found.why_not(Mechanism::fabric)->kind() == Errc::unsupported_by_runtime, "and why that does not");
    a.has_given_everything_back();
    const auto can = Mechanisms::from_message(me.receive<std::uint32_t>("B"));
    const Mechanism chosen = me.must(choose(found.working() & mechanisms_of<Mapping>,
                                            {Mechanism::fabric, Mechanism::v2, Mechanism::v1}, can), "one is chosen");
    me.expect(chosen == Mechanism::v2, "the best of what both can");
    a.refused(choose(found.working(), {Mechanism::fabric}, can), {Errc::mechanism_mismatch}, "nothing else is taken");
    with_mechanism(chosen, [&]<class K>(K) {
      auto exported = me.must(export_for<K>(me.must(allocate_for<K>(a.device, 64 * KiB), "memory")), "exported");
      a.write(exported.bytes(), pattern(64 * KiB));
      a.share_with("B", exported);
      me.pause_until("B", "closed");
      end(me, me.must(std::move(exported).close(), "it ends"));
    });
    a.leave();
  });
  story.actor("B", [&](Actor& me) {
    const Party b(me, 1, a2);
    me.send("A", importable(b.device).to_message());
    b.introduce_myself_to("A");
    ImportedMapping mapping = b.import(b.ticket_from("A"));
    me.expect(mapping.mechanism() == Mechanism::v2, "the importer is told what it got");
    me.expect(b.read(mapping.bytes()) == pattern(64 * KiB), "with the bytes");
    end(me, std::move(mapping));
    b.leave();
    me.step("closed");
  });
  story.run();
}

TEST_CASE("B113 weights in many blocks, updated in place: four workers see every update") {
  constexpr std::size_t blocks = 200;
  constexpr int updates = 10;
  constexpr std::size_t size = 16 * KiB;
  const std::vector<std::string> workers{"W1", "W2", "W3", "W4"};
  Story story;
  story.actor("trainer", [&](Actor& me) {
    const Party trainer(me);
    std::vector<ExportToken<v2>> tokens;
    std::vector<BarePid> pids;
    for (const std::string& worker : workers) pids.push_back(trainer.pid_of(worker));
    for (std::size_t i = 0; i < blocks; ++i) {
      tokens.push_back(me.must(export_handle<v2>(trainer.map(pattern(size, i))), "a block is exported"));
      const auto ticket = me.must(tokens.back().admit(pids), "to all workers");
      for (const std::string& worker : workers) trainer.send(worker, ticket);
    }
    for (const std::string& worker : workers) me.pause_until(worker, "imported");
    for (int update = 1; update <= updates; ++update) {
      for (std::size_t i = 0; i < blocks; ++i) {
        trainer.write(tokens[i].bytes(), pattern(size, i + static_cast<std::size_t>(update)));
      }
      me.step("update " + std::to_string(update));
      for (const std::string& worker : workers) me.pause_until(worker, "saw " + std::to_string(update));
    }
    for (auto& token : tokens) end(me, me.must(std::move(token).close(), "it ends"));
    tokens.clear();
    trainer.leave();
  });
  for (const std::string& name : workers) {
    story.actor(name, [&](Actor& me) {
      const Party worker(me);
      worker.introduce_myself_to("trainer");
      std::vector<ImportedMapping> weights;
      for (std::size_t i = 0; i < blocks; ++i) weights.push_back(worker.import(worker.ticket_from("trainer")));
      me.step("imported");
      for (int update = 1; update <= updates; ++update) {
        me.pause_until("trainer", "update " + std::to_string(update));
        for (std::size_t i = 0; i < blocks; ++i) {
          me.expect(worker.read(weights[i].bytes()) == pattern(size, i + static_cast<std::size_t>(update)), "updated");
        }
        me.step("saw " + std::to_string(update));
      }
      for (ImportedMapping& each : weights) end(me, std::move(each));
      weights.clear();
      worker.leave();
    });
  }
  story.run();
}
