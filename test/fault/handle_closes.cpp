// SPDX-License-Identifier: Apache-2.0
// Ends that the runtime refuses: what can be tried again comes back, what cannot is parked and seen, nothing is lost.
#include "support/sharing.hpp"

#include <devshare/acl/codes.hpp>

#include <optional>
#include <utility>
#include <vector>

using namespace devshare;
using namespace devshare::test;

namespace {

using acl::Entry;

constexpr std::size_t block = 2 * 1024 * 1024;
constexpr acl::aclError injected = acl::code::rt_drv_internal;
constexpr Refusal asked_for{Errc::refused, injected, Reason::injected};

// One actor. With `parks` something is parked in the end, and the runtime is left to the end of the process.
enum class Leaves { nothing, something };
template <class Part>
void alone(Leaves leaves, Part part) {
  Story story;
  story.actor("A", [&](Actor& me) {
    const Party a(me);
    part(a);
    if (leaves == Leaves::nothing) a.leave();
  });
  story.run();
}

// A mapping of several pieces with a pattern in it.
Mapping pool_of(const Party& a, std::size_t pieces) {
  AddressReservation range = a.me.must(AddressReservation::reserve(a.device, pieces * block), "a range");
  const auto memory = [&] { return a.me.must(PhysicalHandle::allocate(a.device, block), "memory"); };
  Mapping pool = a.me.must(std::move(range).map(memory()), "the first piece");
  for (std::size_t i = 1; i < pieces; ++i) a.me.must(pool.extend(memory()), "another piece");
  a.write(pool.bytes(), pattern(pieces * block));
  return pool;
}

void is_parked(const Party& a, std::size_t objects, std::size_t bytes) {
  a.me.expect_equal(a.runtime.parked().objects, objects, "so many objects are parked");
  a.me.expect_equal(a.runtime.parked().bytes, bytes, "with their bytes");
}

}  // namespace

TEST_CASE("a mapping whose close is refused comes back as it was, and can be closed again") {
  constexpr std::size_t pieces = 3;
  alone(Leaves::nothing, [](const Party& a) {
    Mapping pool = pool_of(a, pieces);
    const host::Counters before = host::counters();
    const auto address = pool.address();
    const auto refused_at = [&](Entry call, std::uint32_t nth) {
      host::fail(call, nth, injected);
      auto closed = std::move(pool).close();
      a.refused(closed, asked_for, "the close is refused");
      if (!closed) pool = std::move(closed).error().take_back();
      host::Counters after = host::counters();
      after.views = before.views;
      a.me.expect(after == before, "with all it had: " + host::in_words(after));
      a.me.expect(pool.address() == address && a.read(pool.bytes()) == pattern(pieces * block), "and all bytes");
      is_parked(a, 0, 0);
    };
    for (std::uint32_t nth = 1; nth <= pieces; ++nth) refused_at(Entry::aclrtUnmapMem, nth);
    refused_at(Entry::aclrtReleaseMemAddress, 1);
    a.me.must(std::move(pool).close(), "now it closes");
  });
}

TEST_CASE("a mapping that sleeps comes back asleep") {
  alone(Leaves::nothing, [](const Party& a) {
    Mapping pool = pool_of(a, 2);
    a.me.must(pool.release_backing(), "it sleeps");
    host::fail(Entry::aclrtReleaseMemAddress, 1, injected);
    auto closed = std::move(pool).close();
    a.refused(closed, asked_for, "its addresses are not released");
    if (!closed) pool = std::move(closed).error().take_back();
    a.me.expect(pool.asleep() && pool.reserved() == 2 * block, "it sleeps still");
    a.me.must(pool.restore(), "and wakes");
    a.me.expect_equal(pool.size(), 2 * block, "whole");
    a.me.must(std::move(pool).close(), "and closes");
  });
}

TEST_CASE("a handle that cannot be freed after its mapping is parked, and what comes back is empty") {
  alone(Leaves::something, [](const Party& a) {
    Mapping pool = pool_of(a, 2);
    host::fail(Entry::aclrtFreePhysical, 1, injected);
    auto closed = std::move(pool).close();
    a.refused(closed, asked_for, "a handle is not freed");
    if (!closed) a.me.expect(!std::move(closed).error().take_back().holds(), "there is no mapping left to come back");
    is_parked(a, 1, block);
    a.me.expect_equal(host::bytes_in_use(0), block, "it is there still, the other one is freed");
    a.me.expect_equal(host::counters().reservations, std::uint64_t{0}, "the addresses are released");
  });
}

TEST_CASE("sleep that cannot free a piece keeps it and those before it, and sleeps when tried again") {
  constexpr std::size_t pieces = 3;
  alone(Leaves::nothing, [](const Party& a) {
    Mapping pool = pool_of(a, pieces);
    host::fail(Entry::aclrtFreePhysical, 2, injected);
    a.refused(pool.release_backing(), asked_for, "the second of three is not freed");
    a.me.expect_equal(pool.size(), 2 * block, "two are mapped");
    a.me.expect(a.read(pool.bytes()) == pattern(2 * block), "with their bytes");
    a.me.must(pool.release_backing(), "now it sleeps");
    a.me.expect_equal(host::bytes_in_use(0), std::size_t{0}, "and everything went back");
    a.me.must(pool.restore(), "it wakes");
    a.me.expect_equal(pool.size(), pieces * block, "whole");
    a.me.must(std::move(pool).close(), "and ends");
  });
}

TEST_CASE("a destructor parks what cannot be unmapped, with its addresses, and frees nothing behind it") {
  alone(Leaves::something, [](const Party& a) {
    {
      const Mapping pool = pool_of(a, 2);
      host::fail(Entry::aclrtUnmapMem, 2, injected);
    }
    is_parked(a, 1, block);
    a.me.expect_equal(host::bytes_in_use(0), block, "the piece that was unmapped is freed");
    a.me.expect_equal(host::counters().reservations, std::uint64_t{1}, "the range stays");
  });
}

TEST_CASE("a destructor parks the memory of a mapping also where the runtime says that it does not know it") {
  alone(Leaves::something, [](const Party& a) {
    {
      const Mapping pool = pool_of(a, 2);
      host::fail(Entry::aclrtFreePhysical, 1, acl::code::rt_param_invalid);
    }
    is_parked(a, 1, block);
    a.me.expect_equal(host::bytes_in_use(0), block, "one handle is there still");
    a.me.expect_equal(host::counters().reservations, std::uint64_t{0}, "the addresses are released");
  });
}

TEST_CASE("a mapping that came back in a refusal nobody looks at ends as its destructor ends it") {
  alone(Leaves::nothing, [](const Party& a) {
    host::fail(Entry::aclrtUnmapMem, 1, injected);
    const Result<void> closed = a.map(block).close();
    a.refused(closed, asked_for, "the first attempt is refused, and told");
    a.has_given_everything_back();
    is_parked(a, 0, 0);
  });
}

TEST_CASE("a handle that is not freed comes back with its export, its bytes and its reference") {
  alone(Leaves::nothing, [](const Party& a) {
    auto token =
        a.me.must(export_handle<v2>(a.me.must(PhysicalHandle::allocate(a.device, block), "memory")), "exported");
    PhysicalHandle handle = a.me.must(std::move(token).close(), "which it stays");
    for (int times = 0; times < 2; ++times) {
      host::fail(Entry::aclrtFreePhysical, 1, injected);
      auto freed = std::move(handle).close();
      a.refused(freed, asked_for, "it is not freed");
      if (!freed) handle = std::move(freed).error().take_back();
      a.me.expect(handle.holds() && handle.physical_size() == block, "it comes back");
      a.me.expect_equal(host::counters().handles, std::uint64_t{1}, "as the one handle there is");
    }
    auto other = export_handle<v1>(std::move(handle));
    a.refused(other, {Errc::already_exported_as}, "it knows what it was exported as");
    handle = std::move(other).error().take_back();
    a.me.must(std::move(handle).close(), "now it is freed");
  });
}

TEST_CASE("a range whose addresses are not released comes back") {
  alone(Leaves::nothing, [](const Party& a) {
    AddressReservation range = a.me.must(AddressReservation::reserve(a.device, block), "a range");
    host::fail(Entry::aclrtReleaseMemAddress, 1, injected);
    auto closed = std::move(range).close();
    a.refused(closed, asked_for, "it is not released");
    if (!closed) range = std::move(closed).error().take_back();
    auto mapped = std::move(range).map(a.me.must(PhysicalHandle::allocate(a.device, block), "memory"));
    Mapping mapping = a.me.must(std::move(mapped), "it can be mapped into as before");
    a.me.must(std::move(mapping).close(), "and ends with the mapping");
  });
}

TEST_CASE("destructors park handles and ranges that they cannot give up") {
  alone(Leaves::something, [](const Party& a) {
    {
      const PhysicalHandle handle = a.me.must(PhysicalHandle::allocate(a.device, block), "memory");
      host::fail(Entry::aclrtFreePhysical, 1, injected);
    }
    is_parked(a, 1, block);
    {
      const AddressReservation range = a.me.must(AddressReservation::reserve(a.device, 2 * block), "a range");
      host::fail(Entry::aclrtReleaseMemAddress, 1, injected);
    }
    is_parked(a, 2, 3 * block);
  });
}

TEST_CASE("an imported handle that is not freed comes back, is shared as before, and is freed when tried again") {
  const auto made = [](const Party& a) {
    return a.me.must(export_handle<v2>(a.map(pattern(block))), "A exports");
  };
  import_story(made, [](const Party& b, const ReceivedTicket& ticket) {
    ImportedHandle handle = b.me.must(ImportedHandle::open(ticket, b.device), "B imports");
    host::fail(Entry::aclrtFreePhysical, 1, injected);
    auto closed = std::move(handle).close();
    b.refused(closed, asked_for, "it is not freed");
    if (!closed) handle = std::move(closed).error().take_back();
    ImportedMapping mapping = b.import(ticket);
    b.me.expect_equal(host::counters().handles_imported, std::uint64_t{1}, "one import for both");
    b.me.expect(b.read(mapping.bytes()) == pattern(block), "and the bytes are A's");
    b.me.must(std::move(mapping).close(), "the mapping ends");
    b.me.must(std::move(handle).close(), "now the handle is freed");
  });
}
