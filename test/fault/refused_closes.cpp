// SPDX-License-Identifier: Apache-2.0
// A close that the runtime refuses gives the object back with what is left to close: it can be closed again, and ends with
// its destructor otherwise.
#include "support/locked_bytes.hpp"
#include "support/reports.hpp"
#include "support/sharing.hpp"

#include <devshare/acl/codes.hpp>

#include <array>
#include <chrono>
#include <optional>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

using namespace devshare;
using namespace devshare::test;

namespace {

using acl::Entry;

constexpr std::size_t block = 2 * 1024 * 1024;
constexpr acl::aclError injected = acl::code::rt_drv_internal;
const Refusal asked_for{Errc::refused, injected, Reason::injected};
const Refusal in_a_stream{Errc::in_use, injected, Reason::in_use};

// What the process holds; a connection stays for the next import.
host::Counters held() {
  host::Counters counters = host::counters();
  counters.connections = 0;
  return counters;
}

// Expects that the close is refused, and what comes back.
template <class T>
T refused_close(const Party& a, T object, const Refusal& expected, std::string_view sentence) {
  auto closed = std::move(object).close();
  a.refused(closed, expected, sentence);
  if (closed) a.me.fail("so nothing comes back");
  return std::move(closed).error().take_back();
}

// Of an object made by `make` and ended by `call`: a refused close changes nothing that the runtime counts, also the
// second time; then it closes; then another one ends by its destructor, in spite of a refused close.
template <class Make>
void can_be_closed_again(const Party& a, Entry call, Make make) {
  const host::Counters before = held();
  for (const bool by_destructor : {false, true}) {
    {
      auto object = make();
      const host::Counters open = held();
      for (int times = 0; times < 2; ++times) {
        host::fail(call, 1, injected);
        object = refused_close(a, std::move(object), asked_for, "the close is refused");
        a.me.expect(held() == open, "and has changed nothing: " + host::in_words(held()));
      }
      if (by_destructor) continue;
      a.me.must(std::move(object).close(), "what came back closes");
      a.me.expect(held() == before, "all of it: " + host::in_words(held()));
      a.refused(std::move(object).close(), {Errc::closed}, "once");
    }
    a.me.expect(held() == before, "nothing is left: " + host::in_words(held()));
  }
}

auto key_of_a(const Party& a) { return a.me.must(export_key(a.allocate(pattern(block))), "A exports by key"); }
auto token_of_a(const Party& a) { return a.me.must(export_handle<v2>(a.map(pattern(block))), "A exports by handle"); }

// The same as import_story, of a B that ends its session, and others, itself; of two devices, of which A's is 0.
template <class Made, class Part>
void import_in_sessions(Made made, Part part, std::int32_t device_of_b = 0) {
  Story story;
  story.actor("A", [&](Actor& me) {
    const Party a(me, 0, {{"DEVICES", "2"}});
    auto exported = made(a);
    a.share_with("B", exported);
    me.pause_until("B", "closed");
    me.must(me.must(std::move(exported).close(), "A closes").close(), "and frees");
    a.leave();
  });
  story.actor("B", [&](Actor& me) {
    const Party b(me, device_of_b, {{"DEVICES", "2"}});
    b.introduce_myself_to("A");
    part(b, b.ticket_from("A"));
    me.expect(host::counters() == host::Counters{}, "nothing is left: " + host::in_words(host::counters()));
    me.step("closed");
  });
  story.run();
}

// B's import of what another device has, with peer access of its own.
ImportedMapping import_with_grant(const Party& b, const ReceivedTicket& ticket) {
  PeerAccess grant = b.me.must(PeerAccess::both_ways(b.device, b.other_device(0)), "peer access");
  return b.me.must(ImportedMapping::open(ticket, b.device, std::move(grant)), "imported with it");
}

}  // namespace

TEST_CASE("memory, streams, events, notifies and registrations whose close is refused can be closed again") {
  alone([](const Party& a) {
    can_be_closed_again(a, Entry::aclrtFree, [&] { return a.allocate(block); });
    can_be_closed_again(a, Entry::aclrtDestroyStream, [&] { return a.me.must(Stream::create(a.device), "a stream"); });
    can_be_closed_again(a, Entry::aclrtDestroyEvent, [&] { return a.me.must(Event::create(a.device), "an event"); });
    can_be_closed_again(a, Entry::aclrtDestroyEvent, [&] { return a.me.must(SharedEvent::create(a.device), "an event"); });
    can_be_closed_again(a, Entry::aclrtDestroyNotify, [&] { return a.me.must(SharedNotify::create(a.device), "a notify"); });
    alignas(4096) static std::array<std::byte, 8192> pages;
    can_be_closed_again(a, Entry::aclrtHostUnregister,
                        [&] { return a.me.must(HostRegistration::of(a.device, pages), "a registration"); });
  });
}

TEST_CASE("what is left of peer access is the direction that was refused") {
  alone({{"DEVICES", "2"}}, [](const Party& a) {
    const Device other = a.other_device(1);
    const auto grants = [] { return host::counters().peer_grants; };
    for (const std::uint32_t nth : {1U, 2U}) {
      PeerAccess both = a.me.must(PeerAccess::both_ways(a.device, other), "two directions");
      a.me.expect_equal(grants(), std::uint64_t{2}, "of which each counts");
      host::fail(Entry::aclrtDeviceDisablePeerAccess, nth, injected);
      both = refused_close(a, std::move(both), asked_for, "one is not given back");
      a.me.expect_equal(grants(), std::uint64_t{1}, "the other is");
      a.me.expect(both.holds() && !both.joins(a.device, other), "which the object says");
      a.me.must(std::move(both).close(), "what is left can be closed");
      a.me.expect_equal(grants(), std::uint64_t{0}, "and no more than that");
    }
  });
}

TEST_CASE("an error of a stream's work is told by its close, which ends the stream all the same") {
  alone([](const Party& a) {
    DeviceMemory memory = a.allocate(block);
    Stream stream = a.me.must(Stream::create(a.device), "a stream");
    host::fail_task(Entry::aclrtMemsetAsync, 1, code::rt_sys_dma);
    a.me.must(fill(stream, memory.bytes(), std::byte{1}), "enqueued");
    stream = refused_close(a, std::move(stream), {Errc::refused, code::rt_sys_dma, Reason::injected}, "close tells");
    a.me.expect_equal(host::counters().streams, std::uint64_t{0}, "there is no stream any more");
    a.me.expect(!stream.holds(), "which the object says");
    a.refused(std::move(stream).close(), {Errc::closed}, "and nothing to close");
  });
}

TEST_CASE("memory that a stream uses is not freed, and is freed by the same object when the stream is done") {
  alone([](const Party& a) {
    DeviceMemory memory = a.allocate(pattern(block));
    Stream stream = a.me.must(Stream::create(a.device), "a stream");
    const LockedBytes to(a, Bytes(block));
    host::delay_task(Entry::aclrtMemcpyAsync, 200);
    a.me.must(copy_to_host(stream, to.span(), memory.bytes()), "enqueued");
    memory = refused_close(a, std::move(memory), in_a_stream, "it is not freed from under the stream");
    a.me.must(stream.synchronize(), "the stream is done");
    a.me.expect(to.hold(pattern(block)), "with the bytes");
    a.me.must(std::move(memory).close(), "now it is freed");
  });
}

TEST_CASE("an import by key that is not closed is shared as before, and closes when tried again") {
  import_story(key_of_a, [](const Party& b, const ReceivedTicket& ticket) {
    can_be_closed_again(b, Entry::aclrtIpcMemClose, [&] { return b.import(ticket); });
    ImportedMapping mapping = b.import(ticket);
    host::fail(Entry::aclrtIpcMemClose, 1, injected);
    mapping = refused_close(b, std::move(mapping), asked_for, "it is not closed");
    ImportedMapping another = b.import(ticket);
    b.me.expect_equal(host::counters().key_opens, std::uint64_t{1}, "one import for both");
    b.me.expect(b.read(another.bytes()) == pattern(block), "and the bytes are A's");
    b.me.must(std::move(mapping).close(), "one of two closes");
    b.me.expect_equal(host::counters().key_opens, std::uint64_t{1}, "which leaves the import");
    b.me.must(std::move(another).close(), "the last one closes it");
  });
}

TEST_CASE("an import by handle that is not unmapped, or whose addresses are not released, closes when tried again") {
  import_story(token_of_a, [](const Party& b, const ReceivedTicket& ticket) {
    for (const Entry call : {Entry::aclrtUnmapMem, Entry::aclrtReleaseMemAddress}) {
      can_be_closed_again(b, call, [&] { return b.import(ticket); });
    }
  });
}

TEST_CASE("imports that a stream uses are not closed, and close when the stream is done") {
  const auto part = [](const Party& b, const ReceivedTicket& ticket) {
    ImportedMapping mapping = b.import(ticket);
    Stream stream = b.me.must(Stream::create(b.device), "a stream");
    const LockedBytes to(b, Bytes(block));
    host::delay_task(Entry::aclrtMemcpyAsync, 200);
    b.me.must(copy_to_host(stream, to.span(), mapping.bytes()), "enqueued");
    mapping = refused_close(b, std::move(mapping), in_a_stream, "it is not closed from under the stream");
    b.me.must(stream.synchronize(), "the stream is done");
    b.me.expect(to.hold(pattern(block)), "with A's bytes");
    b.me.must(std::move(mapping).close(), "now it closes");
  };
  SECTION("by key") { import_story(key_of_a, part); }
  SECTION("by handle") { import_story(token_of_a, part); }
}

TEST_CASE("a range of imported handles that is not taken apart keeps what is mapped in it") {
  import_story(token_of_a, [](const Party& b, const ReceivedTicket& ticket) {
    const auto range = [&] {
      AddressReservation reserved = b.me.must(AddressReservation::reserve(b.device, block), "a range");
      return b.me.must(std::move(reserved).map(b.me.must(ImportedHandle::open(ticket, b.device), "a handle")), "mapped");
    };
    for (const Entry call : {Entry::aclrtUnmapMem, Entry::aclrtReleaseMemAddress}) can_be_closed_again(b, call, range);
  });
}

TEST_CASE("a grant that an import has ends with it, not with a close that is refused") {
  const auto part = [](const Party& b, const ReceivedTicket& ticket) {
    ImportedMapping mapping = import_with_grant(b, ticket);
    const auto bytes_of_a = mapping.bytes();
    host::fail(Entry::aclrtIpcMemClose, 1, injected);
    mapping = refused_close(b, std::move(mapping), asked_for, "it is not closed");
    b.me.expect_equal(host::counters().peer_grants, std::uint64_t{2}, "the import has its grant");
    Bytes bytes(16);
    b.refused(copy_to_host(b.device, bytes, bytes_of_a.first(16)),
              {Errc::cross_device_copy}, "and R42 holds as before");
    b.me.must(std::move(mapping).close(), "closed");
    b.me.expect_equal(host::counters().peer_grants, std::uint64_t{0}, "and the grant with it");
    b.leave();
  };
  import_in_sessions(key_of_a, part, 1);
}

TEST_CASE("a grant that a parked import has ends with it, or with the session, which tells nobody again") {
  const auto part = [](const Party& b, const ReceivedTicket& ticket) {
    const Reports reports;
    const auto park_one = [&] {
      const ImportedMapping mapping = import_with_grant(b, ticket);
      host::fail(Entry::aclrtIpcMemClose, 1, injected);
    };
    park_one();
    b.me.expect_equal(host::counters().peer_grants, std::uint64_t{2}, "the parked import has its grant");
    b.me.must(import_with_grant(b, ticket).close(), "another one is imported and closed");
    b.me.expect_equal(host::counters().peer_grants, std::uint64_t{0}, "before which that had ended");
    park_one();
    b.me.must(b.runtime.finalize(), "the session ends");
    b.me.expect_equal(b.runtime.parked().objects, std::size_t{0}, "and what was parked in it");
    b.me.expect_equal(reports.heard.size(), std::size_t{2}, "each was reported once");
    for (const Diagnostic& told : reports.heard) {
      b.me.expect(told.event == DiagnosticEvent::memory_parked, "as parked");
    }
  };
  import_in_sessions(key_of_a, part, 1);
}

TEST_CASE("a grant of an import that the runtime does not know is given back all the same") {
  const auto part = [](const Party& b, const ReceivedTicket& ticket) {
    ImportedMapping mapping = import_with_grant(b, ticket);
    b.me.expect_equal(detail::cross_device_imports, 1U, "R42 is asked for one import");
    host::fail(Entry::aclrtIpcMemClose, 1, code::rt_param_invalid);
    refused_as(b, std::move(mapping).close(), Errc::invalid_argument, "there is nothing to close, it says");
    b.me.expect_equal(host::counters().peer_grants, std::uint64_t{0}, "the grant is given back");
    b.me.expect_equal(detail::cross_device_imports, 0U, "and R42 asked for none");
    b.me.must(b.runtime.finalize(), "the session ends");
  };
  import_in_sessions(key_of_a, part, 1);
}

TEST_CASE("a destructor parks an import that it cannot close, and the next import closes it") {
  import_story(key_of_a, [](const Party& b, const ReceivedTicket& ticket) {
    const auto is_parked = [&](std::size_t objects) {
      b.me.expect_equal(b.runtime.parked().objects, objects, "so many are parked");
      b.me.expect_equal(b.runtime.parked().bytes, objects * block, "with their bytes");
    };
    const auto park_one = [&] {
      const Reports reports;
      const void* address = nullptr;
      {
        const ImportedMapping mapping = b.import(ticket);
        address = mapping.bytes().data().address();
        host::fail(Entry::aclrtIpcMemClose, 1, injected);
      }
      if (b.me.expect_equal(reports.heard.size(), 1U, "it is reported once")) {
        b.me.expect(reports.heard[0].event == DiagnosticEvent::memory_parked && reports.heard[0].object == address,
                    "as parked, with its address");
      }
    };
    park_one();
    is_parked(1);
    b.me.expect_equal(host::counters().key_opens, std::uint64_t{1}, "and open still");
    b.me.must(b.me.must(ImportedConstMapping::open(ticket, b.device), "imported anew, for reading").close(), "and closed");
    is_parked(0);
    b.me.expect_equal(host::counters().key_opens, std::uint64_t{0}, "nothing is open");

    park_one();
    host::fail(Entry::aclrtIpcMemClose, 1, injected);
    ImportedMapping shared = b.import(ticket);
    is_parked(1);
    b.me.expect(b.read(shared.bytes()) == pattern(block), "what still cannot be closed is shared");
    b.me.expect_equal(host::counters().key_opens, std::uint64_t{1}, "and open once");
    b.me.must(std::move(shared).close(), "one of two ends");
    b.me.must(b.import(ticket).close(), "and the next import closes the other");
    is_parked(0);
  });
}

TEST_CASE("what is parked ends with its session") {
  import_in_sessions(key_of_a, [](const Party& b, const ReceivedTicket& ticket) {
    const Reports reports;
    {
      const ImportedMapping mapping = b.import(ticket);
      host::fail(Entry::aclrtIpcMemClose, 1, injected);
    }
    b.me.expect_equal(b.runtime.parked().objects, std::size_t{1}, "an import is parked");
    b.me.must(b.runtime.finalize(), "the session ends");
    b.me.expect_equal(b.runtime.parked().objects, std::size_t{0}, "and nothing is parked any more");
  });
}

TEST_CASE("addresses that are neither released nor mapped again are parked, and the import has ended") {
  import_in_sessions(token_of_a, [](const Party& b, const ReceivedTicket& ticket) {
    const Reports reports;
    ImportedMapping mapping = b.import(ticket);
    const void* const address = address_of(mapping.bytes());
    host::fail(Entry::aclrtReleaseMemAddress, 1, injected);
    host::fail(Entry::aclrtMapMem, 1, injected);
    mapping = refused_close(b, std::move(mapping), asked_for, "the addresses are not released");
    b.refused(std::move(mapping).close(), {Errc::closed}, "there is nothing left to close");
    b.me.expect_equal(b.runtime.parked().bytes, block, "they are parked");
    b.me.expect(reports.heard.size() == 1 && reports.heard[0].event == DiagnosticEvent::memory_parked, "which is told");
    b.me.expect_equal(host::counters().reservations, std::uint64_t{1}, "and stay reserved");
    b.me.expect_equal(host::counters().mappings, std::uint64_t{0}, "with nothing in them");
    b.me.expect_equal(host::counters().handles, std::uint64_t{0}, "and A's memory is given back");
    ImportedMapping again = b.import(ticket);
    b.me.expect(address_of(again.bytes()) != address, "a new import has addresses of its own");
    b.me.expect(b.read(again.bytes()) == pattern(block), "and A's bytes");
    b.me.must(std::move(again).close(), "which closes");
    b.me.must(b.runtime.finalize(), "the session ends");
  });
}

TEST_CASE("a session that ends in the middle of a refused close takes the object with it") {
  Story story;
  story.actor("A", [](Actor& me) {
    const Party a(me, 0, {{"DEVICES", "2"}});
    me.must(a.runtime.finalize(), "each round has a session of its own");
    const auto play = [&](Entry call, auto make) {
      constexpr int afterwards = -1;
      for (const int moment : {0, 5, 15, 40, afterwards}) {
        const Runtime runtime = me.must(Runtime::open(), "a session");
        const Device device = me.must(runtime.device(DeviceId{0}), "and its device");
        auto object = me.must(make(runtime, device), "an object");
        host::delay(call, 20);
        host::fail(call, 1, injected);
        std::optional<Errc> refusal;
        std::thread closes([&] {
          auto closed = std::move(object).close();
          if (closed) return;
          refusal = closed.error().kind();
          object = std::move(closed).error().take_back();
        });
        if (moment == afterwards) {
          closes.join();
          me.expect(refusal == Errc::refused, "the close is refused");
        } else {
          std::this_thread::sleep_for(std::chrono::milliseconds(moment));
        }
        me.must(runtime.finalize(), "the session ends");
        if (closes.joinable()) closes.join();
        me.expect(refusal.has_value(), "the close is refused, by the runtime or because there is none");
        host::clear();
        const auto again = std::move(object).close();
        if (me.expect(!again, "whatever came back cannot be closed any more")) {
          const Errc kind = again.error().error().kind();
          me.expect(kind == Errc::closed || kind == Errc::runtime_gone, name_of(kind));
        }
        me.expect(host::counters() == host::Counters{}, "nothing is left: " + host::in_words(host::counters()));
      }
    };
    play(Entry::aclrtFree, [](const Runtime&, const Device& d) { return DeviceMemory::allocate(d, block); });
    play(Entry::aclrtDestroyStream, [](const Runtime&, const Device& d) { return Stream::create(d); });
    play(Entry::aclrtDestroyEvent, [](const Runtime&, const Device& d) { return SharedEvent::create(d); });
    play(Entry::aclrtDestroyNotify, [](const Runtime&, const Device& d) { return SharedNotify::create(d); });
    play(Entry::aclrtFreePhysical, [](const Runtime&, const Device& d) { return PhysicalHandle::allocate(d, block); });
    play(Entry::aclrtUnmapMem, [](const Runtime&, const Device& d) { return allocate_for<v2>(d, block); });
    play(Entry::aclrtReleaseMemAddress, [](const Runtime&, const Device& d) { return AddressReservation::reserve(d, block); });
    play(Entry::aclrtDeviceDisablePeerAccess, [&](const Runtime& runtime, const Device& d) {
      return PeerAccess::both_ways(d, me.must(runtime.device(DeviceId{1}), "the other device"));
    });
    alignas(4096) static std::array<std::byte, 8192> pages;
    play(Entry::aclrtHostUnregister, [](const Runtime&, const Device& d) { return HostRegistration::of(d, pages); });
  });
  story.run();
}

TEST_CASE("memory that was freed behind its object is not freed again at an address that is somebody else's by then") {
  alone([](const Party& a) {
    std::optional<DeviceMemory> memory = a.allocate(block);
    void* const address = address_of(memory->bytes());
    a.me.must(a.device.make_current(), "the device is current");
    a.call_succeeds(api().aclrtFree(address), "freed behind its object");
    auto closed = std::move(*memory).close();
    refused_as(a, closed, Errc::invalid_argument, "it is not there to be freed");
    if (!closed) *memory = std::move(closed).error().take_back();
    DeviceMemory other = a.allocate(pattern(block));
    a.me.expect(address_of(other.bytes()) == address, "another block is where it was");
    memory.reset();
    a.me.expect(a.read(span_at(address, block)) == pattern(block), "and is there after the end of the first");
  });
}

TEST_CASE("a block that rehouse cannot free at once ends all the same") {
  alone([](const Party& a) {
    const Reports reports;
    DeviceMemory memory = a.allocate(pattern(block));
    host::fail(Entry::aclrtFree, 1, injected);
    Mapping mapping = a.me.must(rehouse(std::move(memory)), "the bytes are elsewhere");
    a.me.expect_equal(host::counters().allocations, std::uint64_t{0}, "the block is gone");
    a.me.expect(a.read(mapping.bytes()) == pattern(block), "and the bytes are right");
    a.me.expect(reports.heard.empty(), "there is nothing to report");
    a.me.must(std::move(mapping).close(), "closed");
  });
}

TEST_CASE("threads that wait for an import whose close is refused, while the session ends, leave nothing") {
  import_in_sessions(key_of_a, [](const Party& b, const ReceivedTicket& ticket) {
    for (int round = 0; round < 20; ++round) {
      const Runtime runtime = b.me.must(Runtime::open(), "a session");
      const Device device = b.me.must(runtime.device(DeviceId{0}), "and its device");
      std::optional<ImportedMapping> mapping = b.me.must(ImportedMapping::open(ticket, device), "imported");
      host::delay(Entry::aclrtIpcMemClose, 20);
      host::fail(Entry::aclrtIpcMemClose, 1, injected);
      std::thread closes([&] {
        auto closed = std::move(*mapping).close();
        if (!closed) *mapping = std::move(closed).error().take_back();
      });
      std::vector<std::thread> wait;
      for (int i = 0; i < 2; ++i) {
        wait.emplace_back([&] { (void)ImportedMapping::open(ticket, device); });
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(round));
      (void)runtime.finalize();
      closes.join();
      mapping.reset();
      for (std::thread& thread : wait) thread.join();
      host::clear();
    }
    b.me.expect_equal(b.runtime.parked().objects, std::size_t{0}, "nothing is parked");
  });
}
