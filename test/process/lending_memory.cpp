// SPDX-License-Identifier: Apache-2.0
// What can be lent, and how it arrives: every kind of memory, slices, reading only, other devices, chosen mechanisms.
#include "lend_one.hpp"

using namespace devshare;
using namespace devshare::test;

namespace {

constexpr std::size_t size = 64 * 1024;

// An engine's own block of aclrtMalloc memory.
class EngineBlock {
 public:
  explicit EngineBlock(DeviceMemory&& memory) : memory_(std::move(memory)) {}
  DeviceSpan<std::byte> bytes() noexcept { return memory_.bytes(); }
  Device device() const noexcept { return memory_.device(); }
  Result<void> close() && noexcept { return std::move(memory_).close(); }

 private:
  DeviceMemory memory_;
};

template <class Make, class Use>
void lend_and_use(Make make, Offering offering, std::int32_t device, Switches switches, Use use) {
  test::lend_and_use({switches, offering, device}, make, [](const auto&...) {}, use);
}

void read_all(const Party& b, const Endpoint& endpoint, Mechanism expected) {
  Lease lease = b.me.must(borrow(b.device, endpoint, "m", 30s), "B borrows");
  b.me.expect(lease.mechanism() == expected, fmt::format("by {}", name_of(lease.mechanism())));
  b.me.expect(b.read(lease.bytes().first(size)) == pattern(size), "with the right bytes");
  b.me.must(std::move(lease).close(), "and returns it");
}

}  // namespace

namespace devshare {
template <>
inline constexpr bool is_key_exportable<EngineBlock> = true;
}

TEST_CASE("every kind of memory can be lent, and comes back as it went in", "[any library]") {
  SECTION("memory of devshare") {
    lend_and_use([](const Party& a) { return a.allocate(pattern(size)); }, {}, 0, {},
                 [](const Party& b, const Endpoint& e) { read_all(b, e, Mechanism::by_key); });
  }
  SECTION("a block of the engine's own type") {
    lend_and_use([](const Party& a) { return EngineBlock(a.allocate(pattern(size))); }, {}, 0, {},
                 [](const Party& b, const Endpoint& e) { read_all(b, e, Mechanism::by_key); });
  }
  SECTION("a mapping") {
    lend_and_use([](const Party& a) { return a.map(pattern(size)); }, {}, 0, {},
                 [](const Party& b, const Endpoint& e) { read_all(b, e, Mechanism::v2); });
  }
  SECTION("a handle that is mapped nowhere") {
    lend_and_use(
        [](const Party& a) { return a.me.must(PhysicalHandle::allocate(a.device, size), "physical memory"); }, {}, 0, {},
        [](const Party& b, const Endpoint& e) {
          Lease lease = b.me.must(borrow(b.device, e, "m", 30s), "B borrows");
          b.write(lease.bytes().first(100), pattern(100));
          b.me.expect(b.read(lease.bytes().first(100)) == pattern(100), "and uses it");
        });
  }
}

TEST_CASE("memory that the engine keeps is lent by promise, and is the engine's at the end", "[any library]") {
  Story story;
  const Endpoint endpoint = Endpoint::path(story.file("lender"));
  story.actor("A", [&](Actor& me) {
    const Party a(me);
    {
      DeviceMemory memory = a.allocate(pattern(size));
      Lender lender = me.must(Lender::at(a.runtime, endpoint), "A has an endpoint");
      Serving serving = me.must(serve(lender), "a thread serves");
      Lent lent = me.must(lender.offer("m", UnownedMemory::promise_outlives(a.device, memory.bytes())), "A offers");
      me.pause_until("B", "done");
      const UnownedMemory back = me.must(std::move(lent).close(30s), "A has it back");
      me.expect(back.bytes().data() == memory.bytes().data(), "the same");
      me.must(std::move(memory).close(), "and frees what was its own all the time");
    }
    a.leave();
  });
  story.actor("B", [&](Actor& me) {
    const Party b(me);
    read_all(b, endpoint, Mechanism::by_key);
    me.step("done");
  });
  story.run();
}

TEST_CASE("the mechanism is what the lender prefers of what the borrower can, and stays", "[any library]") {
  for (const Mechanism preferred : {Mechanism::v1, Mechanism::v2, Mechanism::fabric}) {
    CAPTURE(name_of(preferred));
    lend_and_use([](const Party& a) { return a.map(pattern(size)); }, {.prefer = {preferred}}, 0,
                 {{"DEVSHARE_HOST_PROFILE", "a3"}}, [&](const Party& b, const Endpoint& e) { read_all(b, e, preferred); });
  }
}

TEST_CASE("a kind that the product lacks is passed over, and what none of both has is refused with its reason",
          "[any library]") {
  lend_and_use([](const Party& a) { return a.map(pattern(size)); }, {.prefer = {Mechanism::fabric, Mechanism::v1}}, 0, {},
               [](const Party& b, const Endpoint& e) { read_all(b, e, Mechanism::v1); });
  lend_and_use([](const Party& a) { return a.map(pattern(size)); }, {.prefer = {Mechanism::by_key}}, 0, {},
               [](const Party& b, const Endpoint& e) {
                 const auto refused = borrow(b.device, e, "m", 30s);
                 refused_as(b.me, refused, Errc::mechanism_mismatch, "a mapping has no key");
                 b.me.expect(explain(refused.error()).note == "the other side could not choose a mechanism",
                             "and B is told who failed at what");
               });
}

TEST_CASE("a slice is exactly what was asked for, one that leaves the memory is refused (B023)", "[any library]") {
  lend_and_use([](const Party& a) { return a.allocate(pattern(size)); }, {}, 0, {}, [](const Party& b, const Endpoint& e) {
    const Slice slice{4097, 1001};
    Lease lease = b.me.must(borrow(b.device, e, "m", 30s, {.slice = slice}), "B borrows a part");
    b.me.expect_equal(lease.size(), slice.size, "of its size");
    b.me.expect(b.read(lease.bytes()) == pattern(slice.size, 0, slice.offset), "at its place");
    for (const Slice wrong : {Slice{size, 1}, Slice{0, size + 1}, Slice{~std::size_t{0}, 2}, Slice{1, 0}}) {
      refused_as(b.me, borrow(b.device, e, "m", 30s, {.slice = wrong}), Errc::out_of_range, "there is no such part");
    }
  });
}

TEST_CASE("what is lent for reading can be borrowed for nothing else, and the kernel keeps it so (B107)") {
  lend_and_use([](const Party& a) { return a.allocate(pattern(size)); }, {.access = AccessMode::read_only}, 0, {},
               [](const Party& b, const Endpoint& e) {
                 refused_as(b.me, borrow(b.device, e, "m", 30s), Errc::access_mismatch, "not for writing");
                 ConstLease lease = b.me.must(borrow_to_read(b.device, e, "m", 30s), "for reading");
                 b.me.expect(lease.access_enforced(), "the kernel enforces it");
                 b.me.expect(b.read(lease.bytes()) == pattern(size), "with the right bytes");
               });
}

TEST_CASE("a borrower on another device uses what it borrowed as one that imports does: by key with kernels, by handle also "
          "by copies") {
  lend_and_use([](const Party& a) { return a.allocate(pattern(size)); }, {}, 1, {}, [](const Party& b, const Endpoint& e) {
    Lease lease = b.me.must(borrow(b.device, e, "m", 30s), "B borrows");
    const auto seen = b.view(lease.bytes());
    const Bytes expected = pattern(size);
    b.me.expect(std::equal(seen.begin(), seen.end(), expected.begin()), "a kernel sees the right bytes");
    Bytes bytes(size);
    refused_as(b.me, copy_to_host(b.device, bytes, lease.bytes()), Errc::cross_device_copy, "R42 forbids the copy");
  });
  lend_and_use([](const Party& a) { return a.map(pattern(size)); }, {}, 1, {},
               [](const Party& b, const Endpoint& e) { read_all(b, e, Mechanism::v2); });
}

TEST_CASE("a process cannot borrow from itself: that would import its own export (B039)", "[any library]") {
  Story story;
  const Endpoint endpoint = Endpoint::path(story.file("lender"));
  story.actor("A", [&](Actor& me) {
    const Party a(me);
    {
      Lender lender = me.must(Lender::at(a.runtime, endpoint), "A has an endpoint");
      Serving serving = me.must(serve(lender), "a thread serves");
      Lent lent = me.must(lender.offer("m", a.allocate(size)), "A offers");
      refused_as(me, borrow(a.device, endpoint, "m", 30s), Errc::self_import, "and cannot borrow that");
      me.must(me.must(std::move(lent).close(30s), "A closes").close(), "and frees");
    }
    a.leave();
  });
  story.run();
}
