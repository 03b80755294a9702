// SPDX-License-Identifier: Apache-2.0
// Sharing physical memory as a program does it, through the typed layer: from the handle to the memory given back, by
// each kind of token. What goes wrong is in handle_rules.cpp and handle_cases.cpp.
#include "support/sharing.hpp"
#include "support/soon.hpp"

#include <string>
#include <utility>
#include <vector>

using namespace devshare;
using namespace devshare::test;

namespace {

constexpr std::size_t KiB = 1024;
constexpr std::size_t MiB = 1024 * KiB;
const Switches a3{{"PROFILE", "a3"}};  // the product that has fabric tokens

std::uint64_t on_both_devices() { return host::bytes_in_use(0) + host::bytes_in_use(1); }

// Takes memory back from whatever held it and ends it.
template <class Held>
void end(Actor& me, Held held) {
  me.must(std::move(held).close(), "it ends");
}

}  // namespace

TEMPLATE_TEST_CASE("A shares a mapping with B by a token: B reads, writes and closes; A sees it and has its memory back",
                   "", v1, v2, fabric) {
  for (const std::int32_t device_of_b : {0, 1}) {
    CAPTURE(device_of_b);
    constexpr std::size_t size = 3 * MiB + 5;
    constexpr std::size_t physical = 4 * MiB;
    Story story;
    story.actor("A", [&](Actor& me) {
      const Party a(me, 0, a3);
      Mapping mapping = a.map(pattern(size, 1));
      const void* const address = address_of(mapping.bytes());
      auto token = me.must(export_handle<TestType>(std::move(mapping)), "A exports");
      a.share_with("B", token);
      me.pause_until("B", "written");
      me.expect(a.read(token.bytes()) == pattern(size, 2), "A sees what B wrote, in all of it");
      me.expect_equal(on_both_devices(), physical, "the memory is there once");
      me.pause_until("B", "closed");
      Mapping back = me.must(std::move(token).close(), "A ends the export");
      me.expect(address_of(back.bytes()) == address && back.size() == size, "the mapping is the same");
      me.expect(a.read(back.bytes()) == pattern(size, 2), "with what B wrote in it");
      end(me, std::move(back));
      me.expect_equal(on_both_devices(), 0U, "the devices are empty");
      a.leave();
    });
    story.actor("B", [&](Actor& me) {
      const Party b(me, device_of_b, a3);
      b.introduce_myself_to("A");
      const ReceivedTicket ticket = b.ticket_from("A");
      me.expect(ticket.mechanism() == TestType::mechanism && !ticket.unrestricted(), "by token, for whom A admits");
      me.expect(ticket.size() == size && ticket.block_size() == physical, "both sizes are known");
      ImportedMapping mapping = b.import(ticket);
      me.expect(mapping.mechanism() == TestType::mechanism && mapping.device() == b.device, "it says how it came, and where");
      me.expect_equal(mapping.size(), size, "B has as much as A asked for");
      me.expect(b.read(mapping.bytes()) == pattern(size, 1), "B sees what A wrote");
      b.write(mapping.bytes(), pattern(size, 2));
      me.step("written");
      me.must(mapping.check(), "the memory is there");
      end(me, std::move(mapping));
      b.leave();
      me.step("closed");
    });
    story.run();
  }
}

TEMPLATE_TEST_CASE("a token for whoever holds it needs no admission", "", v1, v2, fabric) {
  Story story;
  story.actor("A", [&](Actor& me) {
    const Party a(me, 0, a3);
    auto token = me.must(export_handle_unrestricted<TestType>(a.map(pattern(64 * KiB))), "A exports to all");
    const auto ticket = me.must(token.ticket(), "the ticket needs nobody");
    a.send("B", ticket);
    a.send("C", ticket);
    me.pause_until("B", "closed");
    me.pause_until("C", "closed");
    end(me, me.must(std::move(token).close(), "A ends the export"));
    a.leave();
  });
  for (const char* const name : {"B", "C"}) {
    story.actor(name, [](Actor& me) {
      const Party importer(me, 0, a3);
      const ReceivedTicket ticket = importer.ticket_from("A");
      me.expect(ticket.unrestricted(), "it asks nobody");
      ImportedMapping mapping = importer.import(ticket);
      me.expect(importer.read(mapping.bytes()) == pattern(64 * KiB), "the bytes are there");
      end(me, std::move(mapping));
      importer.leave();
      me.step("closed");
    });
  }
  story.run();
}

TEST_CASE("R39 memory lives as long as anybody holds it: A frees its handle and ends, B goes on") {
  Story story;
  story.actor("A", [&](Actor& me) {
    const Party a(me);
    auto token = me.must(export_handle<v2>(a.map(pattern(2 * MiB, 3))), "A exports");
    a.share_with("B", token);
    me.pause_until("B", "imported");
    end(me, me.must(std::move(token).close(), "A ends the export"));
    me.expect_equal(host::bytes_in_use(0), 2 * MiB, "the memory is in use still");
    a.leave();
    me.step("gone");
  });
  story.actor("B", [&](Actor& me) {
    const Party b(me);
    b.introduce_myself_to("A");
    ImportedMapping mapping = b.import(b.ticket_from("A"));
    me.step("imported");
    me.pause_until_ended("A");
    me.must(mapping.check(), "the bytes are there");
    me.expect(b.read(mapping.bytes()) == pattern(2 * MiB, 3), "and are A's");
    end(me, std::move(mapping));
    me.expect_equal(host::bytes_in_use(0), 0U, "the last one gave it back");
    b.leave();
  });
  story.run();
}

TEST_CASE("a handle without an address is shared, and the exporter maps it later", "[any library]") {
  Story story;
  story.actor("A", [&](Actor& me) {
    const Party a(me);
    PhysicalHandle handle = me.must(PhysicalHandle::allocate(a.device, 5 * MiB), "A allocates");
    me.expect(handle.size() == 5 * MiB && handle.physical_size() == 6 * MiB, "both sizes are kept");
    auto token = me.must(export_handle<v1>(std::move(handle)), "A exports the handle");
    a.share_with("B", token);
    me.pause_until("B", "written");
    Mapping mapping = me.must(Mapping::of(me.must(std::move(token).close(), "A has the handle back")), "A maps it");
    me.expect(a.read(mapping.bytes()) == pattern(5 * MiB, 4), "B's bytes are in it");
    end(me, std::move(mapping));
    a.leave();
  });
  story.actor("B", [&](Actor& me) {
    const Party b(me);
    b.introduce_myself_to("A");
    ImportedMapping mapping = b.import(b.ticket_from("A"));
    b.write(mapping.bytes(), pattern(5 * MiB, 4));
    me.step("written");
    end(me, std::move(mapping));
    b.leave();
  });
  story.run();
}

TEST_CASE("B033 B035 a ticket opened again is the same import, counted; slices of one token are views of it") {
  Story story;
  story.actor("A", [&](Actor& me) {
    const Party a(me);
    auto token = me.must(export_handle<v2>(a.map(pattern(2 * MiB))), "A exports");
    const BarePid b = a.pid_of("B");
    a.send("B", me.must(token.admit(b), "all of it"));
    a.send("B", me.must(token.admit(b, {64 * KiB, 4 * KiB}), "a slice"));
    a.refused(token.admit(b, {2 * MiB, 1}), {Errc::out_of_range}, "a slice beyond the end");
    me.pause_until("B", "closed");
    end(me, me.must(std::move(token).close(), "A ends the export"));
    a.leave();
  });
  story.actor("B", [&](Actor& me) {
    const Party b(me);
    b.introduce_myself_to("A");
    const ReceivedTicket whole = b.ticket_from("A");
    const ReceivedTicket slice = b.ticket_from("A");
    ImportedMapping first = b.import(whole);
    ImportedMapping second = b.import(whole);
    ImportedMapping part = b.import(slice);
    me.expect(address_of(first.bytes()) == address_of(second.bytes()), "it is the same import");
    me.expect_equal(host::counters().handles_imported, 1U, "which the runtime did once");
    me.expect(b.read(part.bytes()) == pattern(4 * KiB, 0, 64 * KiB), "the slice is where it should be");
    b.refused(ImportedMapping::open(whole, b.other_device(1)), {Errc::already_imported}, "on another device");
    ImportedHandle handle = me.must(ImportedHandle::open(whole, b.device), "its handle can be had as well");
    me.expect_equal(host::counters().handles_imported, 1U, "and is the same");
    end(me, std::move(first));
    end(me, std::move(second));
    me.expect(b.read(part.bytes()).size() == 4 * KiB, "the last object keeps it");
    end(me, std::move(part));
    me.expect_equal(host::counters().mappings, 0U, "unmapped with the last mapping");
    me.expect_equal(host::counters().handles_imported, 1U, "the handle goes on");
    end(me, std::move(handle));
    me.expect_equal(host::counters().handles_imported, 0U, "and goes with its last object");
    b.leave();
    me.step("closed");
  });
  story.run();
}

TEST_CASE("a pool of the importer: several handles of the exporter in one range, side by side", "[any library]") {
  constexpr std::size_t piece = 2 * MiB;
  constexpr std::size_t pieces = 5;
  Story story;
  story.actor("A", [&](Actor& me) {
    const Party a(me);
    const BarePid b = a.pid_of("B");
    std::vector<ExportToken<v2>> tokens;
    for (std::size_t i = 0; i < pieces; ++i) {
      tokens.push_back(me.must(export_handle<v2>(a.map(pattern(piece, i))), "A exports"));
      a.send("B", me.must(tokens.back().admit(b), "B is admitted"));
    }
    me.pause_until("B", "closed");
    for (auto& token : tokens) end(me, me.must(std::move(token).close(), "A ends the export"));
    tokens.clear();
    a.leave();
  });
  story.actor("B", [&](Actor& me) {
    const Party b(me);
    b.introduce_myself_to("A");
    AddressReservation range = me.must(AddressReservation::reserve(b.device, pieces * piece), "B reserves");
    const auto take = [&] { return me.must(ImportedHandle::open(b.ticket_from("A"), b.device), "a handle is imported"); };
    ImportedMapping pool = me.must(std::move(range).map(take()), "the first is mapped");
    for (std::size_t i = 1; i < pieces; ++i) me.must(pool.extend(take()), "and the next behind it");
    me.expect_equal(pool.size(), pieces * piece, "they are one range");
    const Bytes all = b.read(pool.bytes());
    for (std::size_t i = 0; i < pieces; ++i) {
      const Bytes part(all.begin() + static_cast<std::ptrdiff_t>(i * piece),
                       all.begin() + static_cast<std::ptrdiff_t>((i + 1) * piece));
      me.expect(part == pattern(piece, i), "each has its bytes");
    }
    end(me, std::move(pool));
    b.leave();
    me.step("closed");
  });
  story.run();
}

TEST_CASE("a pool shows its pieces, and each can be shared by itself", "[any library]") {
  constexpr std::size_t size = 3 * MiB;
  constexpr std::size_t whole = 4 * MiB;
  Story story;
  story.actor("A", [&](Actor& me) {
    const Party a(me);
    AddressReservation range = me.must(AddressReservation::reserve(a.device, 3 * whole), "a range");
    const auto memory = [&] { return me.must(PhysicalHandle::allocate(a.device, size), "memory"); };
    Mapping pool = me.must(std::move(range).map(memory()), "the first piece");
    for (int more = 0; more < 2; ++more) me.must(pool.extend(memory()), "another");
    me.expect_equal(pool.pieces(), std::size_t{3}, "three are there");
    for (std::size_t i = 0; i < 3; ++i) {
      const DeviceSpan<std::byte> piece = pool.piece(i);
      me.expect(piece.size() == size && piece.data() == pool.address() + static_cast<std::ptrdiff_t>(i * whole),
                "each where its pages are, as long as it was asked for");
      a.write(piece, pattern(size, i));
    }
    me.expect(pool.piece(3).empty(), "and no fourth");
    auto token = me.must(
        export_handle<v2>(me.must(PhysicalHandle::retain_from(a.device, pool.piece(1)), "the second is retained")),
        "and exported");
    a.share_with("B", token);
    me.pause_until("B", "closed");
    end(me, me.must(std::move(token).close(), "A ends the export"));
    me.must(pool.release_backing(), "it sleeps");
    me.expect(pool.pieces() == 0 && pool.piece(0).empty(), "with nothing to show");
    end(me, std::move(pool));
    a.leave();
  });
  story.actor("B", [&](Actor& me) {
    const Party b(me);
    b.introduce_myself_to("A");
    ImportedMapping mapping = b.import(b.ticket_from("A"));
    me.expect(b.read(mapping.bytes()) == pattern(size, 1), "B has the second piece");
    end(me, std::move(mapping));
    b.leave();
    me.step("closed");
  });
  story.run();
}

TEST_CASE("B037 sleep and wake: the addresses stay, the device has the bytes back unless somebody else holds them") {
  constexpr std::size_t size = 4 * MiB;
  Story story;
  story.actor("A", [&](Actor& me) {
    const Party a(me);
    Mapping alone = a.map(pattern(size, 1));
    const auto address = alone.address();
    me.expect_equal(me.must(alone.release_backing(), "it sleeps"), size, "all bytes went back");
    me.expect(alone.asleep() && alone.bytes().empty() && alone.address() == address, "the addresses are kept");
    me.expect_equal(host::bytes_in_use(0), 0U, "the device is empty");
    a.refused(alone.release_backing(), {Errc::no_backing}, "it sleeps already");
    me.must(alone.restore(), "it wakes");
    me.expect(alone.address() == address && alone.size() == size, "at the same place");
    me.expect(a.read(alone.bytes()) == Bytes(size), "with fresh memory");
    a.refused(alone.restore(), {Errc::invalid_argument}, "it is awake");

    auto token = me.must(export_handle<v2>(std::move(alone)), "A exports");
    a.share_with("B", token);
    a.write(token.bytes(), pattern(size, 2));
    me.step("written");
    me.pause_until("B", "imported");
    Mapping shared = me.must(std::move(token).close(), "A has its mapping back");
    me.expect_equal(me.must(shared.release_backing(), "A's side sleeps"), 0U, "no byte went back: B holds them");
    me.expect_equal(host::bytes_in_use(0), size, "they are in use");
    me.step("asleep");
    me.pause_until("B", "closed");
    me.expect(soon([] { return host::bytes_in_use(0) == 0; }), "B's end gave them back");
    me.must(shared.restore(), "A wakes at the same place");
    me.expect(shared.address() == address && a.read(shared.bytes()) == Bytes(size), "with memory of its own");
    end(me, std::move(shared));
    a.leave();
  });
  story.actor("B", [&](Actor& me) {
    const Party b(me);
    b.introduce_myself_to("A");
    const ReceivedTicket ticket = b.ticket_from("A");
    me.pause_until("A", "written");
    ImportedMapping mapping = b.import(ticket);
    me.step("imported");
    me.pause_until("A", "asleep");
    me.expect(b.read(mapping.bytes()) == pattern(size, 2), "B's bytes are untouched");
    end(me, std::move(mapping));
    b.leave();
    me.step("closed");
  });
  story.run();
}

TEST_CASE("an engine's own mapping is shared by a reference of ours, and stays the engine's", "[any library]") {
  Story story;
  story.actor("A", [&](Actor& me) {
    const Party a(me);
    Mapping engine = a.map(pattern(4 * MiB, 5));  // what the engine's allocator mapped
    PhysicalHandle retained = me.must(PhysicalHandle::retain_from(a.device, engine.bytes()), "a reference is retained");
    a.refused(PhysicalHandle::retain_from(a.device, engine.bytes().first(4 * KiB)), {Errc::out_of_range},
              "a part of a mapping is no mapping");
    auto token = me.must(export_handle<v2>(std::move(retained)), "it is exported");
    a.share_with("B", token);
    me.pause_until("B", "closed");
    end(me, me.must(std::move(token).close(), "the export ends"));
    me.expect(a.read(engine.bytes()) == pattern(4 * MiB, 6), "the engine sees what B wrote");
    end(me, std::move(engine));
    a.leave();
  });
  story.actor("B", [&](Actor& me) {
    const Party b(me);
    b.introduce_myself_to("A");
    ImportedMapping mapping = b.import(b.ticket_from("A"));
    me.expect(b.read(mapping.bytes()) == pattern(4 * MiB, 5), "B sees the engine's bytes");
    b.write(mapping.bytes(), pattern(4 * MiB, 6));
    end(me, std::move(mapping));
    b.leave();
    me.step("closed");
  });
  story.run();
}

TEST_CASE("memory of the host is shared like a device's, and the processors of both sides may touch it") {
  Story story;
  story.actor("A", [&](Actor& me) {
    const Party a(me);
    PhysicalHandle handle = me.must(PhysicalHandle::allocate_on_host(a.device, 2 * MiB), "memory of the host");
    Mapping mapping = me.must(Mapping::of(std::move(handle)), "is mapped");
    auto* const bytes = static_cast<std::byte*>(mapping.address().address());
    bytes[0] = std::byte{7};  // a processor's own access
    auto token = me.must(export_handle<v2>(std::move(mapping)), "and exported");
    a.share_with("B", token);
    me.pause_until("B", "closed");
    me.expect(bytes[1] == std::byte{8}, "what B's processor wrote is there");
    me.expect_equal(on_both_devices(), 0U, "no device gave anything");
    end(me, me.must(std::move(token).close(), "the export ends"));
    a.leave();
  });
  story.actor("B", [&](Actor& me) {
    const Party b(me);
    b.introduce_myself_to("A");
    ImportedMapping mapping = b.import(b.ticket_from("A"));
    auto* const bytes = static_cast<std::byte*>(mapping.bytes().data().address());
    me.expect(bytes[0] == std::byte{7}, "A's byte is there");
    bytes[1] = std::byte{8};
    end(me, std::move(mapping));
    b.leave();
    me.step("closed");
  });
  story.run();
}
