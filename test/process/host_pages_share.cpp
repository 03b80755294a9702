// SPDX-License-Identifier: Apache-2.0
// Sharing memory that is in huge pages of the machine, or has all its pages from the start: both sides have the bytes,
// both know what they have, and the pool of the machine is whole again however the processes end.
#include "support/huge_pages.hpp"
#include "support/sanitizers.hpp"
#include "support/sharing.hpp"
#include "support/soon.hpp"

#include <sys/resource.h>

#include <csignal>
#include <span>
#include <string>
#include <utility>

using namespace devshare;
using namespace devshare::test;

namespace {

constexpr std::size_t MiB = std::size_t{1} << 20;
constexpr std::size_t size = 3 * MiB + 5;  // two huge pages
constexpr HostBacking huge{HostBacking::Pages::huge, true, HugePages::bytes};
constexpr Placement in_huge_pages{.host_pages = HostPages::huge_if_free};
const Switches a3{{"PROFILE", "a3"}};  // the product that has every kind of token

bool is_normal(const HostBacking& backing, bool populated) {
  return backing.pages == HostBacking::Pages::normal && backing.page_size < HugePages::bytes &&
         backing.populated == populated;
}

template <class Held>
void end(Actor& me, Held held) {
  me.must(std::move(held).close(), "it ends");
}

template <class K>
auto exported(const Party& a, Placement placement) {
  auto memory = a.me.must(allocate_for<K>(a.device, size, placement), "memory");
  a.write(memory.bytes(), pattern(size, 1));
  return a.me.must(export_for<K>(std::move(memory)), "A exports");
}

// B reads by copies and by a view what A wrote, and writes something else.
void use(const Party& b, DeviceSpan<std::byte> memory) {
  b.me.expect(b.read(memory) == pattern(size, 1), "B sees what A wrote");
  const auto seen = b.view(memory);
  b.me.expect(Bytes(seen.begin(), seen.end()) == pattern(size, 1), "also by a view");
  b.write(memory, pattern(size, 2));
}

}  // namespace

TEMPLATE_TEST_CASE(
    "two processes share memory in huge pages: the bytes are right, both say huge, and the pool is whole "
    "again afterwards",
    "", by_key, v1, v2, fabric) {
  const HugePages pool(2);
  if (!pool.why_not().empty()) DEVSHARE_SKIP(pool.why_not());
  Story story;
  story.actor("A", [](Actor& me) {
    const Party a(me, 0, a3);
    auto key = exported<TestType>(a, in_huge_pages);
    me.expect(key.owner().backing() == huge, "A's memory is in huge pages");
    me.expect_equal(HugePages::free_pages(), 0U, "all of them");
    me.expect_equal(host::bytes_in_use(0), 4 * MiB, "and the device counts whole ones");
    a.share_with("B", key);
    me.pause_until("B", "written");
    me.expect(a.read(key.bytes()) == pattern(size, 2), "A sees what B wrote");
    me.pause_until("B", "closed");
    auto memory = me.must(std::move(key).close(), "A ends the export");
    me.expect(memory.backing() == huge, "the memory is what it was");
    end(me, std::move(memory));
    me.expect_equal(HugePages::free_pages(), 2U, "the pages are back");
    a.leave();
  });
  story.actor("B", [](Actor& me) {
    const Party b(me, 0, a3);
    b.introduce_myself_to("A");
    ImportedMapping mapping = b.import(b.ticket_from("A"));
    me.expect(mapping.backing() == huge, "B's import is in huge pages too");
    use(b, mapping.bytes());
    me.step("written");
    end(me, std::move(mapping));
    b.leave();
    me.step("closed");
  });
  story.run();
  CHECK(HugePages::free_pages() == 2);
}

TEMPLATE_TEST_CASE("where no huge page is free both sides share normal ones, and say so", "", by_key, v1, v2, fabric) {
  const HugePages pool(1);  // of two that would be needed
  if (!pool.why_not().empty()) DEVSHARE_SKIP(pool.why_not());
  Story story;
  story.actor("A", [](Actor& me) {
    const Party a(me, 0, a3);
    auto key = exported<TestType>(a, in_huge_pages);
    me.expect(is_normal(key.owner().backing(), false), "A's memory is in normal pages");
    me.expect_equal(HugePages::free_pages(), 1U, "the one is left for others");
    a.share_with("B", key);
    me.pause_until("B", "closed");
    me.expect(a.read(key.bytes()) == pattern(size, 2), "A sees what B wrote");
    end(me, me.must(std::move(key).close(), "A ends the export"));
    a.leave();
  });
  story.actor("B", [](Actor& me) {
    const Party b(me, 0, a3);
    b.introduce_myself_to("A");
    ImportedMapping mapping = b.import(b.ticket_from("A"));
    me.expect(is_normal(mapping.backing(), false), "B's import is in normal pages");
    use(b, mapping.bytes());
    end(me, std::move(mapping));
    b.leave();
    me.step("closed");
  });
  story.run();
}

TEMPLATE_TEST_CASE("each side has all pages at once where it asks for them, whatever the other asked", "", by_key, v2) {
  for (const Populate by_a : {Populate::when_touched, Populate::now}) {
    for (const Populate by_b : {Populate::when_touched, Populate::now}) {
      CAPTURE(by_a == Populate::now, by_b == Populate::now);
      Story story;
      story.actor("A", [&](Actor& me) {
        const Party a(me, 0, a3);
        auto key = exported<TestType>(a, {.populate = by_a});
        me.expect(is_normal(key.owner().backing(), by_a == Populate::now), "A has what it asked for");
        a.share_with("B", key);
        me.pause_until("B", "closed");
        me.expect(a.read(key.bytes()) == pattern(size, 2), "A sees what B wrote");
        end(me, me.must(std::move(key).close(), "A ends the export"));
        a.leave();
      });
      story.actor("B", [&](Actor& me) {
        const Party b(me, 0, a3);
        b.introduce_myself_to("A");
        const ReceivedTicket ticket = b.ticket_from("A");
        ImportedMapping mapping = me.must(ImportedMapping::open(ticket, b.device, by_b), "B imports");
        me.expect(is_normal(mapping.backing(), by_b == Populate::now), "B has what it asked for");
        use(b, mapping.bytes());
        end(me, std::move(mapping));
        b.leave();
        me.step("closed");
      });
      story.run();
    }
  }
}

TEST_CASE(
    "an import with a grant of its own has all pages at once too, and a second object of the ticket shares them") {
  Story story;
  story.actor("A", [](Actor& me) {
    const Party a(me);
    auto key = exported<by_key>(a, {});
    a.share_with("B", key);
    me.pause_until("B", "closed");
    end(me, me.must(std::move(key).close(), "A ends the export"));
    a.leave();
  });
  story.actor("B", [](Actor& me) {
    const Party b(me, 1);
    b.introduce_myself_to("A");
    const ReceivedTicket ticket = b.ticket_from("A");
    PeerAccess grant = me.must(PeerAccess::both_ways(b.device, b.other_device(0)), "a grant");
    ImportedMapping first =
        me.must(ImportedMapping::open(ticket, b.device, std::move(grant), Populate::now), "B imports");
    ImportedMapping second = me.must(ImportedMapping::open(ticket, b.device), "and again");
    me.expect(is_normal(first.backing(), true) && second.backing() == first.backing(), "both have all pages");
    end(me, std::move(first));
    end(me, std::move(second));
    b.leave();
    me.step("closed");
  });
  story.run();
}

TEMPLATE_TEST_CASE("B107 memory in huge pages is imported for reading, and the kernel keeps it so", "", by_key, v2) {
  const HugePages pool(2);
  if (!pool.why_not().empty()) DEVSHARE_SKIP(pool.why_not());
  Story story;
  story.actor("A", [](Actor& me) {
    const Party a(me);
    auto key = exported<TestType>(a, in_huge_pages);
    a.share_with("B", key);
    me.pause_until_ended("B");
    end(me, me.must(std::move(key).close(), "A ends the export"));
    a.leave();
  });
  story.actor("B", [](Actor& me) {
    const Party b(me);
    b.introduce_myself_to("A");
    const ImportedConstMapping mapping =
        me.must(ImportedConstMapping::open(b.ticket_from("A"), b.device), "B imports for reading");
    me.expect(mapping.access_enforced() && mapping.backing() == huge, "in huge pages, enforced");
    me.expect(b.read(mapping.bytes()) == pattern(size, 1), "B reads");
    const auto seen = me.must(host::view(mapping.bytes()), "by a view too");
    me.expect(Bytes(seen.begin(), seen.end()) == pattern(size, 1), "B sees what A wrote");
    ::signal(SIGSEGV, SIG_DFL);  // a sanitizer would turn it into an exit
    const_cast<volatile std::byte&>(seen[0]) = std::byte{0xff};
  });
  story.ends("B", by_signal(SIGSEGV));
  story.run();
  CHECK(soon([] { return HugePages::free_pages() == 2; }));
}

TEST_CASE("R10 a range that starts inside a huge page is imported by key where a lenient runtime exports it") {
  const HugePages pool(2);
  if (!pool.why_not().empty()) DEVSHARE_SKIP(pool.why_not());
  constexpr std::size_t offset = 2 * MiB + 16 * 1024;
  constexpr std::size_t part = 100'000;
  Story story;
  story.actor("A", [](Actor& me) {
    const Party a(me, 0, {{"INTERIOR_EXPORT", "allow"}, {"HUGE_PAGE", "16K"}});
    DeviceMemory memory = a.allocate(size, in_huge_pages);
    me.expect(memory.backing() == huge, "in huge pages");
    a.write(memory.bytes(), pattern(size, 1));
    me.must(a.device.make_current(), "the device is current");
    Key key;
    void* const inside = static_cast<std::byte*>(address_of(memory.bytes())) + offset;
    a.call_succeeds(api().aclrtIpcMemGetExportKey(inside, part, key.bytes.data(), key.bytes.size(),
                                                  acl::ipc_export::disable_pid_validation),
                    "a range inside is exported");
    me.send("B", key);
    me.pause_until("B", "closed");
    me.expect(a.read(std::as_const(memory).bytes().subspan(offset, part)) == pattern(part, 9), "A sees what B wrote");
    a.call_succeeds(api().aclrtIpcMemClose(key.text()), "A closes the key");
    end(me, std::move(memory));
    a.leave();
  });
  story.actor("B", [](Actor& me) {
    const Party b(me, 0, {{"INTERIOR_EXPORT", "allow"}, {"HUGE_PAGE", "16K"}});
    me.must(b.device.make_current(), "the device is current");
    const Key key = me.receive<Key>("A");
    void* address = nullptr;
    b.call_succeeds(api().aclrtIpcMemImportByKey(&address, key.text(), 1), "B imports it");
    const DeviceSpan<std::byte> memory(DevicePtr<std::byte>::from_address(address), part);
    me.expect(b.read(memory) == pattern(part, 1, offset), "it is what lies there");
    b.write(memory, pattern(part, 9));
    b.call_succeeds(api().aclrtIpcMemClose(key.text()), "B closes it");
    b.leave();
    me.step("closed");
  });
  story.run();
  CHECK(HugePages::free_pages() == 2);
}

TEST_CASE("R39 huge pages live as long as anybody holds their memory, and go with the last process") {
  const HugePages pool(2);
  if (!pool.why_not().empty()) DEVSHARE_SKIP(pool.why_not());
  Story story;
  story.actor("A", [](Actor& me) {
    const Party a(me);
    auto token = exported<v2>(a, in_huge_pages);
    a.share_with("B", token);
    me.pause_until("B", "imported");
  });
  story.kill("A", at("B", "imported"));
  story.actor("B", [](Actor& me) {
    const Party b(me);
    b.introduce_myself_to("A");
    ImportedMapping mapping = b.import(b.ticket_from("A"));
    me.step("imported");
    me.pause_until_ended("A");
    me.expect_equal(HugePages::free_pages(), 0U, "B holds the pages");
    use(b, mapping.bytes());
    end(me, std::move(mapping));
    me.expect(soon([] { return HugePages::free_pages() == 2; }), "and gives them back");
    b.leave();
  });
  story.run();
}

TEMPLATE_TEST_CASE("whoever is killed, and wherever, the machine has its huge pages back", "", by_key, v2) {
  const HugePages pool(4);
  if (!pool.why_not().empty()) DEVSHARE_SKIP(pool.why_not());
  for (const auto& [who, where] :
       {std::pair{"A", "allocated"}, {"A", "exported"}, {"B", "imported"}, {"B", "written"}}) {
    CAPTURE(who, where);
    Story story;
    story.actor("A", [](Actor& me) {
      const Party a(me);
      auto memory = me.must(allocate_for<TestType>(a.device, size, in_huge_pages), "memory");
      me.expect(memory.backing() == huge, "in huge pages");
      me.step("allocated");
      a.write(memory.bytes(), pattern(size, 1));
      auto key = me.must(export_for<TestType>(std::move(memory)), "A exports");
      const auto pid = me.receive_if_sent("B");
      if (!pid) return;
      std::int32_t number = 0;
      std::memcpy(&number, pid->data(), sizeof number);
      a.send("B", me.must(key.admit(BarePid::from_peer_message(number)), "B is admitted"));
      me.step("exported");
      me.pause_until_ended("B");
      end(me, me.must(std::move(key).close(), "A ends the export"));
      a.leave();
    });
    story.actor("B", [](Actor& me) {
      const Party b(me);
      b.introduce_myself_to("A");
      const auto bytes = me.receive_if_sent("A");
      if (!bytes) return;
      auto opened = ImportedMapping::open(me.must(ReceivedTicket::decode(*bytes), "a ticket"), b.device);
      if (!opened) return;  // A was killed first
      ImportedMapping mapping = *std::move(opened);
      me.step("imported");
      if (!copy_to_device(b.device, mapping.bytes(), pattern(size, 2))) return;
      me.step("written");
    });
    story.kill(who, at(where));
    story.run();
    CHECK(soon([] { return HugePages::free_pages() == 4; }));
  }
}

TEST_CASE("B061 a mapping that sleeps gives its huge pages back, and wakes in what the machine has then") {
  const HugePages pool(2);
  if (!pool.why_not().empty()) DEVSHARE_SKIP(pool.why_not());
  Story story;
  story.actor("A", [](Actor& me) {
    const Party a(me);
    Mapping mapping = a.map(4 * MiB, in_huge_pages);
    const DevicePtr<std::byte> address = mapping.address();
    me.expect(mapping.backing() == huge, "in huge pages");
    me.expect_equal(me.must(mapping.release_backing(), "it sleeps"), 4 * MiB, "all bytes went back");
    me.expect_equal(HugePages::free_pages(), 2U, "the pages too");
    me.expect(mapping.backing() == HostBacking{}, "asleep it has none");
    me.must(mapping.restore(), "it wakes");
    me.expect(mapping.backing() == huge && mapping.address() == address, "in huge pages, where it was");
    a.write(mapping.bytes(), pattern(4 * MiB, 1));
    me.must(mapping.release_backing(), "it sleeps");
    DeviceMemory others = a.allocate(MiB, in_huge_pages);  // somebody takes one meanwhile
    me.must(mapping.restore(), "it wakes all the same");
    me.expect(is_normal(mapping.backing(), false) && mapping.address() == address, "in normal pages");
    a.write(mapping.bytes(), pattern(4 * MiB, 2));
    me.expect(a.read(mapping.bytes()) == pattern(4 * MiB, 2), "which hold bytes");
    end(me, std::move(mapping));
    end(me, std::move(others));

    Mapping ready = a.map(4 * MiB, {.populate = Populate::now});
    me.must(ready.release_backing(), "memory with all its pages sleeps");
    me.must(ready.restore(), "and wakes");
    me.expect(is_normal(ready.backing(), true), "with all of them");
    end(me, std::move(ready));
    a.leave();
  });
  story.run();
}

namespace {

// Page faults of two processes that share 64 MiB by key and both touch all of it, from its making to its end.
long faults_of_both(Placement placement, HostBacking::Pages expected) {
  constexpr std::size_t whole = 64 * MiB;
  const auto touch = [](std::span<std::byte> bytes) {
    for (std::size_t at = 0; at < bytes.size(); at += 4096) bytes[at] = std::byte{1};
  };
  const auto faults = [] {
    rusage used{};
    ::getrusage(RUSAGE_SELF, &used);
    return used.ru_minflt;
  };
  Story story;
  story.actor("A", [&](Actor& me) {
    const Party a(me);
    const BarePid pid = a.pid_of("B");
    const long before = faults();
    DeviceMemory memory = a.allocate(whole, placement);
    me.expect(memory.backing().pages == expected, "A has the pages that are counted");
    touch(a.view(memory.bytes()));
    auto key = me.must(export_key(std::move(memory)), "A exports");
    a.send("B", me.must(key.admit(pid), "B is admitted"));
    me.pause_until("B", "closed");
    end(me, me.must(std::move(key).close(), "A ends the export"));
    me.give("faults", faults() - before);
    a.leave();
  });
  story.actor("B", [&](Actor& me) {
    const Party b(me);
    b.introduce_myself_to("A");
    const ReceivedTicket ticket = b.ticket_from("A");
    const long before = faults();
    ImportedMapping mapping = b.import(ticket);
    touch(b.view(mapping.bytes()));
    end(me, std::move(mapping));
    me.give("faults", faults() - before);
    b.leave();
    me.step("closed");
  });
  story.run();
  return story.given<long>("A", "faults") + story.given<long>("B", "faults");
}

}  // namespace

TEST_CASE("64 MiB that both sides touch whole cost at most a 25th of the page faults in huge pages") {
  if (under_sanitizer()) DEVSHARE_SKIP("a sanitizer has page faults of its own");
  const HugePages pool(33);  // aclrtMalloc takes a few bytes more than it is asked for
  if (!pool.why_not().empty()) DEVSHARE_SKIP(pool.why_not());
  const long normal = faults_of_both({}, HostBacking::Pages::normal);
  const long in_huge = faults_of_both(in_huge_pages, HostBacking::Pages::huge);
  CAPTURE(normal, in_huge);
  CHECK(in_huge * 25 <= normal);
}

TEST_CASE("an engine's memory that is retained sleeps and wakes in pages like those it had") {
  const HugePages pool(1);
  if (!pool.why_not().empty()) DEVSHARE_SKIP(pool.why_not());
  Story story;
  story.actor("A", [](Actor& me) {
    const Party a(me);
    Mapping engine = a.map(2 * MiB, in_huge_pages);
    PhysicalHandle retained = me.must(PhysicalHandle::retain_from(a.device, engine.bytes()), "retained");
    me.expect(retained.backing() == huge, "it is known what it is");
    end(me, std::move(engine));
    Mapping mapping = me.must(Mapping::of(std::move(retained)), "mapped");
    me.must(mapping.release_backing(), "it sleeps");
    me.expect_equal(HugePages::free_pages(), 1U, "the page is back");
    me.must(mapping.restore(), "it wakes");
    me.expect(mapping.backing() == huge, "in a huge page");
    end(me, std::move(mapping));
    a.leave();
  });
  story.run();
}

TEST_CASE("imported handles in huge pages are mapped into one range beside others") {
  const HugePages pool(2);
  if (!pool.why_not().empty()) DEVSHARE_SKIP(pool.why_not());
  constexpr std::size_t piece = 2 * MiB;
  Story story;
  story.actor("A", [](Actor& me) {
    const Party a(me);
    std::vector<ExportToken<v2, Mapping>> tokens;
    for (std::size_t i = 0; i < 3; ++i) {
      Mapping mapping = a.map(piece, i == 1 ? Placement{} : in_huge_pages);
      a.write(mapping.bytes(), pattern(piece, i));
      tokens.push_back(me.must(export_handle<v2>(std::move(mapping)), "A exports"));
    }
    const BarePid pid = a.pid_of("B");
    for (auto& token : tokens) a.send("B", me.must(token.admit(pid), "B is admitted"));
    me.pause_until("B", "closed");
    for (auto& token : tokens) end(me, me.must(std::move(token).close(), "A ends the export"));
    tokens.clear();
    a.leave();
  });
  story.actor("B", [](Actor& me) {
    const Party b(me);
    b.introduce_myself_to("A");
    auto range = me.must(AddressReservation::reserve(b.device, 3 * piece), "addresses");
    std::vector<ImportedHandle> handles;
    for (std::size_t i = 0; i < 3; ++i) {
      handles.push_back(me.must(ImportedHandle::open(b.ticket_from("A"), b.device, Populate::now), "B imports"));
      me.expect(handles.back().backing().pages == (i == 1 ? HostBacking::Pages::normal : HostBacking::Pages::huge),
                "it says what it is");
    }
    auto mapped = std::move(range).map(std::move(handles[0]));
    if (!mapped) me.fail("the first is mapped");
    ImportedMapping mapping = *std::move(mapped);
    me.expect(mapping.backing() == huge, "in a huge page");
    for (std::size_t i = 1; i < 3; ++i) me.expect(bool(mapping.extend(std::move(handles[i]))), "the next behind it");
    handles.clear();
    me.expect(is_normal(mapping.backing(), true), "of several the smallest pages, and all are there");
    for (std::size_t i = 0; i < 3; ++i) {
      me.expect(b.read(mapping.bytes().subspan(i * piece, piece)) == pattern(piece, i), "each has its bytes");
    }
    const auto seen = b.view(mapping.bytes());
    me.expect_equal(seen.size(), 3 * piece, "and one view shows all");
    me.expect(seen[piece - 1] == pattern(piece, 0).back() && seen[piece] == pattern(piece, 1).front(),
              "one behind the other");
    end(me, std::move(mapping));
    b.leave();
    me.step("closed");
  });
  story.run();
  CHECK(HugePages::free_pages() == 2);
}

TEST_CASE("an object without memory has no pages, nor has one whose runtime has ended") {
  Story story;
  story.actor("A", [](Actor& me) {
    const Party a(me);
    DeviceMemory memory = a.allocate(100);
    PhysicalHandle handle = me.must(PhysicalHandle::allocate(a.device, 100), "a handle");
    const DeviceMemory moved = std::move(memory);
    const PhysicalHandle other = std::move(handle);
    me.expect(moved.backing() != HostBacking{} && other.backing() != HostBacking{}, "they have");
    me.expect(memory.backing() == HostBacking{} && handle.backing() == HostBacking{}, "empty ones have not");  // NOLINT
    me.must(a.runtime.finalize(), "the runtime ends");
    me.expect(moved.backing() == HostBacking{} && other.backing() == HostBacking{}, "it is not known any more");
  });
  story.run();
}
