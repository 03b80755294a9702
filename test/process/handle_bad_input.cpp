// SPDX-License-Identifier: Apache-2.0
// Every function of the handle path given what it must not be given: null, zero, huge, foreign, moved-from. Each
// answers with its documented error, and nothing is left behind. Forked objects, and those whose runtime has ended, are
// in handle_lifetimes.cpp.
#include "support/sharing.hpp"

#include <limits>
#include <optional>
#include <utility>
#include <vector>

using namespace devshare;
using namespace devshare::test;

namespace {

constexpr std::size_t size = 2 * 1024 * 1024;
constexpr std::size_t huge = std::numeric_limits<std::size_t>::max();

// A exports a handle to whoever asks, and a key; B does `part` with the tickets.
template <class Part>
void with_tickets(Part part) {
  Story story;
  story.actor("A", [](Actor& me) {
    const Party a(me);
    auto token = me.must(export_handle_unrestricted<v2>(a.map(pattern(size))), "A exports");
    auto key = me.must(export_key_unrestricted(a.allocate(size)), "also by key");
    a.send("B", me.must(token.ticket(), "a ticket"));
    a.send("B", me.must(key.ticket(), "a ticket"));
    me.pause_until("B", "done");
    me.must(me.must(std::move(token).close(), "A ends").close(), "and unmaps");
    me.must(me.must(std::move(key).close(), "A ends").close(), "and frees");
    a.leave();
  });
  story.actor("B", [&](Actor& me) {
    const Party b(me);
    const ReceivedTicket by_handle = b.ticket_from("A");
    const ReceivedTicket key = b.ticket_from("A");
    part(b, by_handle, key);
    b.leave();
    me.step("done");
  });
  story.run();
}

}  // namespace

TEST_CASE("sizes of physical memory and of ranges that are none, or more than there is") {
  alone([](const Party& a) {
    refused_as(a, PhysicalHandle::allocate(a.device, 0), Errc::invalid_argument, "no bytes");
    refused_as(a, AddressReservation::reserve(a.device, 0), Errc::invalid_argument, "no addresses");
    for (const std::size_t bytes : {huge, huge - size + 1, std::size_t{1} << 62, std::size_t{65} << 30}) {
      const auto memory = PhysicalHandle::allocate(a.device, bytes);
      refused_as(a, memory, Errc::out_of_memory, fmt::format("{} bytes", bytes));
      if (!memory) a.me.expect(memory.error().detail().needed >= bytes, "the error says how much was wanted");
    }
    for (const std::size_t bytes : {huge, huge - size + 1, std::size_t{1} << 62}) {
      refused_as(a, AddressReservation::reserve(a.device, bytes), Errc::address_space_exhausted,
                 fmt::format("{} bytes of addresses", bytes));
    }
    refused_as(a, PhysicalHandle::allocate_on_host(a.device, 0), Errc::invalid_argument, "no bytes of the host");
    refused_as(a, PhysicalHandle::allocate_on_host(a.device, size, {.numa_node = -2}), Errc::invalid_argument,
               "a node that cannot be");
    a.me.expect(!PhysicalHandle::allocate_on_host(a.device, size, {.numa_node = 1 << 20}), "a node that is not there");
    a.me.expect(!PhysicalHandle::allocate_on_host(a.device, huge), "all bytes there are, of the host");
  });
}

TEST_CASE("B061 only the start of a whole mapping is retained: a range of anybody else's is not ours to share") {
  alone([](const Party& a) {
    const auto retained = [&](DeviceSpan<std::byte> range) { return PhysicalHandle::retain_from(a.device, range); };
    Mapping mapping = a.map(2 * size);
    DeviceMemory block = a.allocate(size);
    AddressReservation range = a.me.must(AddressReservation::reserve(a.device, size), "a range");
    Bytes local(64);
    refused_as(a, retained({}), Errc::invalid_argument, "nothing");
    refused_as(a, retained(span_at(nullptr, size)), Errc::invalid_argument, "null");
    refused_as(a, retained(span_at(local.data(), local.size())), Errc::invalid_argument, "memory of the host");
    refused_as(a, retained(block.bytes()), Errc::invalid_argument, "memory of aclrtMalloc");
    refused_as(a, retained(span_at(range.address().address(), size)), Errc::invalid_argument, "addresses alone");
    refused_as(a, retained(mapping.bytes().last(size)), Errc::invalid_argument, "from inside a mapping");
    refused_as(a, retained(mapping.bytes().first(1)), Errc::out_of_range, "less than a mapping");
    refused_as(a, retained(span_at(address_of(mapping.bytes()), huge)), Errc::out_of_range, "more than there can be");
    refused_as(a, PhysicalHandle::retain_from(a.other_device(1), mapping.bytes()), Errc::invalid_argument,
               "as memory of another device");
    const DeviceSpan<std::byte> stale = span_at(address_of(mapping.bytes()), 2 * size);
    a.me.must(std::move(mapping).close(), "it ends");
    refused_as(a, retained(stale), Errc::invalid_argument, "what was unmapped");
    a.me.must(std::move(block).close(), "freed");
    a.me.must(std::move(range).close(), "released");
  });
}

TEST_CASE("exports, growth and sleep of what cannot do that") {
  alone([](const Party& a) {
    Actor& me = a.me;
    const auto memory = [&](std::size_t bytes) { return me.must(PhysicalHandle::allocate(a.device, bytes), "memory"); };
    AddressReservation range = me.must(AddressReservation::reserve(a.device, size), "a range");
    auto too_large = std::move(range).map(memory(2 * size));
    refused_as(a, too_large, Errc::out_of_range, "memory that is larger than its range");
    Unmapped back = std::move(too_large).error().take_back();
    me.expect(back.range.size() == size && back.handle.size() == 2 * size, "both came back");
    me.must(std::move(back.handle).close(), "it ends");
    me.must(std::move(back.range).close(), "it ends");

    AddressReservation wide = me.must(AddressReservation::reserve(a.device, 2 * size), "a range");
    Mapping pool = me.must(std::move(wide).map(memory(size)), "mapped");
    me.must(pool.extend(memory(size)), "and grown");
    auto exported = export_handle<v2>(std::move(pool));
    refused_as(a, exported, Errc::not_exportable, "several handles as one");
    pool = std::move(exported).error().take_back();
    me.must(pool.release_backing(), "it sleeps");
    auto asleep = export_handle<v1>(std::move(pool));
    refused_as(a, asleep, Errc::no_backing, "what sleeps");
    pool = std::move(asleep).error().take_back();
    auto grown = pool.extend(memory(size));
    refused_as(a, grown, Errc::no_backing, "growth of what sleeps");
    me.must(std::move(grown).error().take_back().close(), "the memory came back");
    refused_as(a, pool.release_backing(), Errc::no_backing, "sleep of what sleeps");
    me.must(pool.restore(), "it wakes");
    refused_as(a, pool.restore(), Errc::invalid_argument, "and wakes once");
    me.expect(pool.piece(2).empty() && pool.piece(huge).empty(), "pieces that are not there are empty");
    me.must(std::move(pool).close(), "it ends");
  });
}

TEST_CASE("admissions to a handle of nobody, and slices that it has not") {
  alone([](const Party& a) {
    auto token = a.me.must(export_handle<v2>(a.map(size)), "exported");
    refused_as(a, token.admit(std::span<const BarePid>()), Errc::invalid_argument, "nobody");
    for (const std::int32_t pid : {0, -1, std::numeric_limits<std::int32_t>::min()}) {
      refused_as(a, token.admit(BarePid::from_peer_message(pid)), Errc::invalid_argument, fmt::format("pid {}", pid));
    }
    const BarePid somebody = BarePid::from_peer_message(1);
    for (const Slice slice : {Slice{0, size + 1}, Slice{size, 1}, Slice{1, size}, Slice{1, 0}, Slice{huge, 1},
                              Slice{1, huge}, Slice{huge, huge}}) {
      refused_as(a, token.admit(somebody, slice), Errc::out_of_range,
                 fmt::format("{} from {}", slice.size, slice.offset));
    }
    a.me.must(a.me.must(std::move(token).close(), "it ends").close(), "it ends");
  });
}

TEST_CASE("imports of what is no handle, and growth of what has no range") {
  with_tickets([](const Party& b, const ReceivedTicket& by_handle, const ReceivedTicket& key) {
    refused_as(b, ImportedHandle::open(key, b.device), Errc::mechanism_mismatch, "the ticket of a key");
    ImportedMapping whole = b.import(by_handle);
    auto grown = whole.extend(b.me.must(ImportedHandle::open(by_handle, b.device), "its handle"));
    refused_as(b, grown, Errc::invalid_argument, "an import by open() has no room to grow");
    ImportedHandle handle = std::move(grown).error().take_back();
    ImportedMapping by_key = b.import(key);
    auto mixed = by_key.extend(std::move(handle));
    refused_as(b, mixed, Errc::invalid_argument, "nor has one by key");
    handle = std::move(mixed).error().take_back();

    AddressReservation elsewhere = b.me.must(AddressReservation::reserve(b.other_device(1), size), "another device's");
    auto apart = std::move(elsewhere).map(std::move(handle));
    refused_as(b, apart, Errc::mixed_memory, "the handle is open on one device, the range is another's");
    UnmappedImport back = std::move(apart).error().take_back();
    b.me.must(std::move(back.range).close(), "the range came back");
    b.me.must(std::move(back.handle).close(), "and the handle");
    b.me.must(std::move(by_key).close(), "closed");
    b.me.must(std::move(whole).close(), "closed");
  });
}

TEST_CASE("host memory that is none, or no whole pages, is not registered") {
  alone([](const Party& a) {
    alignas(4096) static std::byte memory[8192];
    const auto registered = [&](std::byte* at, std::size_t bytes) {
      return HostRegistration::of(a.device, std::span(at, bytes));
    };
    refused_as(a, registered(nullptr, 0), Errc::invalid_argument, "nothing");
    refused_as(a, registered(nullptr, 4096), Errc::invalid_argument, "null");
    refused_as(a, registered(memory, 0), Errc::invalid_argument, "no bytes");
    refused_as(a, registered(memory + 64, 4096), Errc::invalid_argument, "from inside a page");
    a.me.expect(!registered(memory, huge - 4095), "more than there can be");
    DeviceMemory block = a.allocate(size);
    a.me.expect(!registered(static_cast<std::byte*>(address_of(block.bytes())), 4096), "memory of a device");
    a.me.must(std::move(block).close(), "freed");
  });
}

TEST_CASE("nothing is chosen from nothing, and numbers of a message that are no mechanisms are dropped") {
  alone([](const Party& a) {
    refused_as(a, choose({}, Prefer{}, {Mechanism::v1}), Errc::mechanism_mismatch, "nothing works here");
    refused_as(a, choose({Mechanism::v1}, Prefer{}, {}), Errc::mechanism_mismatch, "the importer can nothing");
    refused_as(a, choose({Mechanism::v1}, {}, Mechanisms::from_message(0)), Errc::mechanism_mismatch, "nor by message");
    a.me.expect(Mechanisms::from_message(0xffffffffU) == Mechanisms{Mechanism::by_key, Mechanism::v1, Mechanism::v2,
                                                                    Mechanism::fabric},
                "of all bits there are, those that are known stay");
  });
}

TEST_CASE("B009 whatever is asked of an object of the handle path that holds nothing is `closed`, without a call") {
  with_tickets([](const Party& b, const ReceivedTicket& by_handle, const ReceivedTicket&) {
    Actor& me = b.me;
    alignas(4096) static std::byte memory[4096];
    PhysicalHandle handle = me.must(PhysicalHandle::allocate(b.device, size), "memory");
    AddressReservation range = me.must(AddressReservation::reserve(b.device, 4 * size), "a range");
    Mapping mapping = b.map(size);
    DeviceMemory block = b.allocate(size);
    auto token = me.must(export_handle<v2>(b.map(size)), "a token");
    auto open_token = me.must(export_handle_unrestricted<v2>(b.map(size)), "a token for everybody");
    ImportedMapping import = b.import(by_handle);
    ImportedHandle imported = me.must(ImportedHandle::open(by_handle, b.device), "a handle");
    HostRegistration registration = me.must(HostRegistration::of(b.device, memory), "registered");

    const PhysicalHandle kept_handle = std::move(handle);
    const AddressReservation kept_range = std::move(range);
    const Mapping kept_mapping = std::move(mapping);
    const DeviceMemory kept_block = std::move(block);
    const auto kept_token = std::move(token);
    const auto kept_open_token = std::move(open_token);
    const ImportedMapping kept_import = std::move(import);
    const ImportedHandle kept_imported = std::move(imported);
    const HostRegistration kept_registration = std::move(registration);

    host::record_calls(true);
    const auto closed = [&](const auto& result, std::string_view what) { refused_as(b, result, Errc::closed, what); };
    PhysicalHandle& no_handle = handle;
    me.expect(no_handle.size() == 0 && no_handle.physical_size() == 0, "a moved-from handle has no bytes");
    me.expect(no_handle.backing().pages == HostBacking{}.pages, "and no pages");
    closed(Mapping::of(std::move(no_handle)), "it is not mapped");
    closed(export_handle<v2>(std::move(no_handle)), "nor exported");
    closed(export_handle_unrestricted<v1>(std::move(no_handle)), "nor for everybody");
    closed(std::move(no_handle).close(), "nor closed");
    Mapping& no_mapping = mapping;
    me.expect(no_mapping.size() == 0 && no_mapping.bytes().empty() && no_mapping.reserved() == 0, "nor has a mapping");
    me.expect(no_mapping.pieces() == 0 && no_mapping.piece(0).empty(), "no pieces");
    me.expect(!no_mapping.asleep() && no_mapping.address().address() == nullptr, "no addresses, and no sleep");
    closed(no_mapping.check(), "it has nothing to check");
    closed(no_mapping.release_backing(), "it does not sleep");
    closed(no_mapping.restore(), "nor wake");
    closed(no_mapping.extend(std::move(no_handle)), "nor grow");
    closed(export_handle<v2>(std::move(no_mapping)), "it is not exported");
    closed(std::move(no_mapping).close(), "nor closed");
    AddressReservation& no_range = range;
    me.expect(no_range.size() == 0 && no_range.address().address() == nullptr, "a moved-from range has no addresses");
    closed(std::move(no_range).map(std::move(no_handle)), "nothing is mapped into it");
    closed(std::move(no_range).close(), "nor is it released");
    DeviceMemory& no_block = block;
    closed(rehouse(std::move(no_block)), "moved-from memory moves nowhere");
    auto& no_token = token;
    me.expect(no_token.bytes().empty(), "a moved-from token has no bytes");
    closed(no_token.admit(BarePid::from_peer_message(1)), "it admits nobody");
    closed(std::move(no_token).close(), "and is not closed");
    auto& no_open_token = open_token;
    closed(no_open_token.ticket(), "it has no ticket");
    closed(std::move(no_open_token).close(), "and is not closed");
    ImportedHandle& no_imported = imported;
    me.expect(no_imported.size() == 0 && no_imported.physical_size() == 0, "a moved-from import has no bytes");
    closed(std::move(no_range).map(std::move(no_imported)), "it is not mapped");
    ImportedMapping& no_import = import;
    me.expect(no_import.size() == 0 && no_import.bytes().empty(), "nor has its mapping");
    me.expect(!no_import.access_enforced() && no_import.backing().pages == HostBacking{}.pages, "nor anything else");
    closed(no_import.extend(std::move(no_imported)), "it does not grow");
    closed(no_import.check(), "it has nothing to check");
    closed(std::move(no_import).close(), "nor to close");
    closed(std::move(no_imported).close(), "nor has the handle");
    HostRegistration& no_registration = registration;
    me.expect(no_registration.host().empty() && no_registration.on_device().empty(), "no registration, no memory");
    closed(std::move(no_registration).close(), "and nothing to give back");
    me.expect_equal(host::recorded_calls().size(), 0U, "the runtime saw none of it");
    host::record_calls(false);
  });
}
