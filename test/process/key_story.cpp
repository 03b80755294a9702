// SPDX-License-Identifier: Apache-2.0
// Sharing by key as a program does it, through the typed layer: the story from allocation to the memory given back, and
// its variations. What goes wrong is in key_rules.cpp.
#include "support/sharing.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

using namespace devshare;
using namespace devshare::test;

namespace {

constexpr std::size_t KiB = 1024;
constexpr std::size_t MiB = 1024 * KiB;
constexpr std::size_t GiB = 1024 * MiB;

std::uint64_t on_both_devices() { return host::bytes_in_use(0) + host::bytes_in_use(1); }

}  // namespace

TEST_CASE(
    "A shares memory with B on one device: B reads, writes and closes; A sees it, closes and has its memory back") {
  for (const std::size_t size : {std::size_t{1}, 4 * KiB, 3 * MiB + 5}) {
    CAPTURE(size);
    Story story;
    story.actor("A", [&](Actor& me) {
      const Party a(me);
      DeviceMemory memory = a.allocate(pattern(size, 1));
      const void* const address = address_of(memory.bytes());
      auto key = me.must(export_key(std::move(memory)), "A exports");
      a.share_with("B", key);
      me.pause_until("B", "written");
      me.expect(a.read(key.bytes()) == pattern(size, 2), "A sees what B wrote, in all of it");
      me.pause_until("B", "closed");
      me.expect_equal(host::counters().keys_exported, 1U, "the key is still there");
      DeviceMemory back = me.must(std::move(key).close(), "A closes");
      me.expect_equal(host::counters().keys_exported, 0U, "and now it is not");
      me.expect(address_of(back.bytes()) == address && back.size() == size, "the memory is the same");
      me.expect(a.read(back.bytes()) == pattern(size, 2), "with what B wrote in it");
      me.must(std::move(back).close(), "the memory is freed");
      me.expect_equal(on_both_devices(), 0U, "the devices are empty");
      a.leave();
    });
    story.actor("B", [&](Actor& me) {
      const Party b(me);
      b.introduce_myself_to("A");
      const ReceivedTicket ticket = b.ticket_from("A");
      me.expect(ticket.size() == size && ticket.block_size() == size && ticket.offset() == 0, "it is for all of it");
      me.expect(ticket.mechanism() == Mechanism::by_key && !ticket.unrestricted(), "by key, for whom A admits");
      ImportedMapping mapping = b.import(ticket);
      me.expect_equal(mapping.size(), size, "B has exactly the block");
      me.expect(b.read(mapping.bytes()) == pattern(size, 1), "B sees what A wrote");
      b.write(mapping.bytes(), pattern(size, 2));
      me.step("written");
      me.must(mapping.check(), "the memory is there");
      me.must(std::move(mapping).close(), "B closes");
      b.leave();
      me.step("closed");
    });
    story.run();
  }
}

TEST_CASE("A shares memory with B across two devices: no copies for B (R42), but all that a kernel does") {
  constexpr std::size_t size = 3 * MiB + 5;
  Story story;
  story.actor("A", [&](Actor& me) {
    const Party a(me, 0);
    auto key = me.must(export_key(a.allocate(pattern(size, 1))), "A exports");
    a.share_with("B", key);
    me.pause_until("B", "written");
    me.expect(a.read(key.bytes()) == pattern(size, 2), "A sees what B's kernel wrote");
    me.expect(host::bytes_in_use(0) >= size && host::bytes_in_use(1) == 0, "the memory is on A's device alone");
    me.pause_until("B", "closed");
    me.must(me.must(std::move(key).close(), "A closes").close(), "and frees");
    me.expect_equal(on_both_devices(), 0U, "the devices are empty");
    a.leave();
  });
  story.actor("B", [&](Actor& me) {
    const Party b(me, 1);
    b.introduce_myself_to("A");
    const ReceivedTicket ticket = b.ticket_from("A");
    me.expect_equal(ticket.owner_device(), 0, "the ticket names A's device");
    ImportedMapping mapping = b.import(ticket);
    me.expect(mapping.device() == b.device, "the import is on B's device");
    const Refusal forbidden{Errc::cross_device_copy};
    Bytes bytes(size);
    b.refused(copy_to_host(b.device, bytes, mapping.bytes()), forbidden, "no copy to the host");
    b.refused(copy_to_device(b.device, mapping.bytes(), bytes), forbidden, "no copy from the host");
    const std::span<std::byte> seen = b.view(mapping.bytes());
    me.expect(Bytes(seen.begin(), seen.end()) == pattern(size, 1), "a kernel of B sees what A wrote");
    const Bytes written = pattern(size, 2);
    std::copy(written.begin(), written.end(), seen.begin());
    me.step("written");
    me.must(std::move(mapping).close(), "B closes");
    b.leave();
    me.step("closed");
  });
  story.run();
}

TEST_CASE("four processes import one key and each writes its part, on both devices") {
  constexpr std::size_t part = 64 * KiB;
  const std::array<std::string, 4> names{"B0", "B1", "B2", "B3"};
  Story story;
  story.actor("A", [&](Actor& me) {
    const Party a(me);
    auto key = me.must(export_key(a.allocate(pattern(4 * part, 0))), "A exports");
    for (const std::string& name : names) a.share_with(name, key);
    for (const std::string& name : names) me.pause_until(name, "closed");
    const Bytes seen = a.read(key.bytes());
    for (std::size_t i = 0; i < names.size(); ++i) {
      const auto begin = seen.begin() + static_cast<std::ptrdiff_t>(i * part);
      me.expect(Bytes(begin, begin + part) == pattern(part, 10 + i), "A sees what " + names[i] + " wrote");
    }
    me.must(me.must(std::move(key).close(), "A closes").close(), "and frees");
    me.expect_equal(on_both_devices(), 0U, "the devices are empty");
    a.leave();
  });
  for (std::size_t i = 0; i < names.size(); ++i) {
    story.actor(names[i], [&, i](Actor& me) {
      const Party b(me, static_cast<std::int32_t>(i % 2));  // two of them on the other device
      b.introduce_myself_to("A");
      ImportedMapping mapping = b.import(b.ticket_from("A"));
      const std::span<std::byte> seen = b.view(mapping.bytes());
      me.expect_equal(seen.size(), 4 * part, "it has the whole block");
      const std::span<std::byte> its_part = seen.subspan(i * part, part);
      me.expect(Bytes(its_part.begin(), its_part.end()) == pattern(part, 0, i * part), "and sees what A wrote");
      const Bytes mine = pattern(part, 10 + i);
      std::copy(mine.begin(), mine.end(), its_part.begin());
      me.must(std::move(mapping).close(), "it closes");
      b.leave();
      me.step("closed");
    });
  }
  story.run();
}

TEST_CASE("B023 slices of one key, at any offset, are the bytes that they name and no others") {
  const Bytes content = pattern(1 * MiB, 7);
  const std::array<Slice, 6> slices{Slice{512 * KiB + 7, 100}, {0, 1},           {1 * MiB - 1, 1},
                                    {1, 1 * MiB - 1},          {64 * KiB, 4097}, {0, 0}};
  Story story;
  story.actor("A", [&](Actor& me) {
    const Party a(me);
    auto key = me.must(export_key(a.allocate(content)), "A exports");
    const BarePid b = a.pid_of("B");
    for (const Slice& slice : slices) a.send("B", me.must(key.admit(b, slice), "a slice is shared"));
    const Refusal outside{Errc::out_of_range};
    a.refused(key.admit(b, Slice{1 * MiB, 1}), outside, "a slice behind the block");
    a.refused(key.admit(b, Slice{0, 1 * MiB + 1}), outside, "a slice that leaves the block");
    a.refused(key.admit(b, Slice{1, 1 * MiB}), outside, "a slice that leaves the block by one byte");
    a.refused(key.admit(b, Slice{SIZE_MAX, 2}), outside, "a slice whose end overflows");
    a.refused(key.admit(b, Slice{7, 0}), outside, "an empty slice");
    me.pause_until("B", "closed");
    Bytes expected = content;
    expected[512 * KiB + 7] = std::byte{0xff};
    me.expect(a.read(key.bytes()) == expected, "A sees the byte that B wrote, and no other changed");
  });
  story.actor("B", [&](Actor& me) {
    const Party b(me);
    b.introduce_myself_to("A");
    std::vector<ImportedMapping> mappings;
    for (const Slice& slice : slices) {
      const ReceivedTicket ticket = b.ticket_from("A");
      const Slice whole = slice.size != 0 ? slice : Slice{0, 1 * MiB};
      me.expect(ticket.offset() == whole.offset && ticket.size() == whole.size, "the ticket names the slice");
      ImportedMapping mapping = b.import(ticket);
      me.expect_equal(mapping.size(), whole.size, "the mapping has the slice's size");
      const auto first = content.begin() + static_cast<std::ptrdiff_t>(whole.offset);
      me.expect(b.read(mapping.bytes()) == Bytes(first, first + static_cast<std::ptrdiff_t>(whole.size)),
                "and exactly its bytes");
      mappings.push_back(std::move(mapping));
    }
    me.expect_equal(host::counters().key_opens, 1U, "all of them are one import of the runtime");
    b.write(mappings[0].bytes().first(1), Bytes(1, std::byte{0xff}));
    for (std::size_t i = 0; i + 1 < slices.size(); ++i) me.must(std::move(mappings[i]).close(), "a slice is closed");
    me.expect(b.read(mappings.back().bytes())[0] == content[0], "the last one still reads");
    mappings.clear();
    b.leave();
    me.step("closed");
  });
  story.run();
}

TEST_CASE("B027 offsets beyond 4 GiB arrive as they were sent") {
  constexpr std::size_t size = 5 * GiB;
  const std::array<std::size_t, 4> places{0, 2 * GiB, 4 * GiB, size - 1};
  Story story;
  story.actor("A", [&](Actor& me) {
    const Party a(me);
    DeviceMemory memory = a.allocate(size);
    for (const std::size_t place : places) a.write(memory.bytes().subspan(place, 1), pattern(1, place));
    auto key = me.must(export_key(std::move(memory)), "A exports");
    a.share_with("B", key);
    a.send("B", me.must(key.admit(a.pid_of("B"), Slice{4 * GiB, size - 4 * GiB}), "the end is shared"));
    me.pause_until("B", "closed");
  });
  story.actor("B", [&](Actor& me) {
    const Party b(me);
    b.introduce_myself_to("A");
    b.introduce_myself_to("A");
    const ImportedMapping all = b.import(b.ticket_from("A"));
    const ImportedMapping end = b.import(b.ticket_from("A"));
    me.expect(all.size() == size && end.size() == 1 * GiB, "the sizes are right");
    for (const std::size_t place : places) {
      me.expect(b.read(all.bytes().subspan(place, 1)) == pattern(1, place), "the byte is where it was written");
    }
    me.expect(b.read(end.bytes().first(1)) == pattern(1, 4 * GiB), "the slice begins at its offset");
    me.expect(b.read(end.bytes().last(1)) == pattern(1, size - 1), "and ends with the block");
    me.step("closed");
  });
  story.run();
}

TEST_CASE("a hundred processes are admitted in one step, which is four calls (R16)") {
  Story story;
  story.actor("A", [](Actor& me) {
    const Party a(me);
    auto key = me.must(export_key(a.allocate(pattern(4 * KiB))), "A exports");
    std::vector<BarePid> pids;
    for (std::int32_t i = 0; i < 99; ++i) pids.push_back(BarePid::from_peer_message((1 << 23) + i));  // nobody's
    pids.push_back(a.pid_of("B"));
    host::record_calls(true);
    const auto ticket = me.must(key.admit(pids), "all are admitted");
    me.expect_equal(calls_of(acl::Entry::aclrtIpcMemSetImportPid), 4U, "by calls of 31 at most");
    host::record_calls(false);
    a.send("B", ticket);
    me.pause_until("B", "closed");
    a.refused(key.admit(std::span<const BarePid>()), {Errc::invalid_argument}, "nobody is not enough");
    pids[40] = BarePid::from_peer_message(0);
    host::record_calls(true);
    a.refused(key.admit(pids), {Errc::invalid_argument}, "0 is no process");
    me.expect_equal(calls_of(acl::Entry::aclrtIpcMemSetImportPid), 0U, "which is found out before any call");
  });
  story.actor("B", [](Actor& me) {
    const Party b(me);
    b.introduce_myself_to("A");
    ImportedMapping mapping = b.import(b.ticket_from("A"));
    me.expect(b.read(mapping.bytes()) == pattern(4 * KiB), "the last of them may import");
    me.must(std::move(mapping).close(), "B closes");
    b.leave();
    me.step("closed");
  });
  story.run();
}

TEST_CASE("an unrestricted export is open to whoever holds the ticket, with nobody admitted") {
  Story story;
  story.actor("A", [](Actor& me) {
    const Party a(me);
    auto key = me.must(export_key_unrestricted(a.allocate(pattern(4 * KiB))), "A exports to everybody");
    const auto ticket = me.must(key.ticket(), "it has a ticket at once");
    a.send("B", ticket);
    a.send("C", me.must(key.ticket(Slice{100, 50}), "and one for a slice"));
    me.pause_until("B", "closed");
    me.pause_until("C", "closed");
    me.must(me.must(std::move(key).close(), "A closes").close(), "and frees");
    a.leave();
  });
  story.actor("B", [](Actor& me) {
    const Party b(me);
    const ReceivedTicket ticket = b.ticket_from("A");
    me.expect(ticket.unrestricted(), "the ticket says so");
    ImportedMapping mapping = b.import(ticket);
    me.expect(b.read(mapping.bytes()) == pattern(4 * KiB), "B reads");
    me.must(std::move(mapping).close(), "B closes");
    b.leave();
    me.step("closed");
  });
  story.actor("C", [](Actor& me) {
    const Party c(me, 1);
    ImportedMapping mapping = c.import(c.ticket_from("A"));
    const std::span<std::byte> seen = c.view(mapping.bytes());
    me.expect(Bytes(seen.begin(), seen.end()) == pattern(50, 0, 100), "C's kernel reads its slice");
    me.must(std::move(mapping).close(), "C closes");
    c.leave();
    me.step("closed");
  });
  story.run();
}

TEST_CASE("B076 eight threads open and close one ticket: one address while it is open, and one import at a time") {
  Story story;
  story.actor("A", [](Actor& me) {
    const Party a(me);
    auto key = me.must(export_key(a.allocate(pattern(4 * KiB))), "A exports");
    a.share_with("B", key);
    me.pause_until("B", "closed");
  });
  story.actor("B", [](Actor& me) {
    const Party b(me);
    b.introduce_myself_to("A");
    const ReceivedTicket ticket = b.ticket_from("A");
    const Bytes content = pattern(4 * KiB);
    std::atomic<int> wrong{0};
    const auto in_eight_threads = [](const auto& work) {
      std::vector<std::thread> threads;
      for (int i = 0; i < 8; ++i) threads.emplace_back(work);
      for (std::thread& thread : threads) thread.join();
    };
    // All at once, and the first of them takes its time: the others get what it gets.
    host::delay(acl::Entry::aclrtIpcMemImportByKey, 50);
    host::record_calls(true);
    std::mutex mutex;
    std::vector<ImportedMapping> mappings;
    in_eight_threads([&] {
      auto opened = ImportedMapping::open(ticket, b.device);
      Bytes bytes(content.size());
      if (!opened || !copy_to_host(b.device, bytes, opened->bytes()) || bytes != content) ++wrong;
      const std::lock_guard lock(mutex);
      if (opened) mappings.push_back(*std::move(opened));
    });
    host::clear();
    me.expect_equal(wrong.load(), 0, "every thread reads at once what it opened");
    me.expect_equal(calls_of(acl::Entry::aclrtIpcMemImportByKey), 1U, "by one import");
    for (const ImportedMapping& mapping : mappings) {
      if (mapping.bytes().data() != mappings.front().bytes().data()) ++wrong;
    }
    me.expect_equal(wrong.load(), 0, "at one address");
    mappings.clear();
    me.expect_equal(calls_of(acl::Entry::aclrtIpcMemClose), 1U, "and one close");
    host::record_calls(false);
    // On and on, so that opening meets closing.
    in_eight_threads([&] {
      for (int round = 0; round < 200; ++round) {
        auto opened = ImportedMapping::open(ticket, b.device);
        Bytes byte(1);
        if (!opened || !copy_to_host(b.device, byte, opened->bytes().first(1)) || byte[0] != content[0]) ++wrong;
        if (opened && !(*std::move(opened)).close()) ++wrong;
      }
    });
    me.expect_equal(wrong.load(), 0, "no open, copy or close fails");
    b.leave();
    me.step("closed");
  });
  story.run();
}

TEST_CASE("devices are what each process calls them: a ticket finds its device under any number, or under none") {
  constexpr std::string_view visible = "ASCEND_RT_VISIBLE_DEVICES";
  Story story;
  story.actor("A", [&](Actor& me) {
    const Party a(me, 0, {{visible, "1"}});  // its device 0 is the machine's device 1
    auto key = me.must(export_key(a.allocate(pattern(4 * KiB))), "A exports");
    a.share_with("B", key);
    a.share_with("C", key);
    me.expect(host::bytes_in_use(1) != 0 && host::bytes_in_use(0) == 0, "the memory is on the machine's device 1");
    me.pause_until("B", "closed");
    me.pause_until("C", "closed");
  });
  story.actor("B", [&](Actor& me) {
    const Party b(me, 1);  // sees both
    b.introduce_myself_to("A");
    const ReceivedTicket ticket = b.ticket_from("A");
    me.expect_equal(ticket.owner_device(), 1, "the ticket has the machine's number");
    const Device other = b.other_device(0);
    {
      const ImportedMapping mapping = b.import(ticket);
      me.expect(b.read(mapping.bytes()) == pattern(4 * KiB), "to B it is its device 1: copies are free");
    }
    ImportedMapping mapping = me.must(
        ImportedMapping::open(ticket, other, me.must(PeerAccess::both_ways(other, b.device), "access")), "by grant");
    Bytes bytes(4 * KiB);
    b.refused(copy_to_host(other, bytes, mapping.bytes()), {Errc::cross_device_copy}, "not so from device 0 (R42)");
    me.must(std::move(mapping).close(), "B closes");
    b.leave();
    me.step("closed");
  });
  story.actor("C", [&](Actor& me) {
    const Party c(me, 0, {{visible, "0"}});  // does not see A's device
    c.introduce_myself_to("A");
    ImportedMapping mapping = c.import(c.ticket_from("A"));
    Bytes bytes(4 * KiB);
    c.refused(copy_to_host(c.device, bytes, mapping.bytes()), {Errc::cross_device_copy},
              "C's device 0 is not A's device 0 (R42)");
    const std::span<std::byte> seen = c.view(mapping.bytes());
    me.expect(Bytes(seen.begin(), seen.end()) == pattern(4 * KiB), "a kernel reads");
    me.must(std::move(mapping).close(), "C closes");
    c.leave();
    me.step("closed");
  });
  story.run();
}

// --- whose memory it is ---------------------------------------------------------------------------------------------

namespace {

// A block as an engine has it: of a pool that counts its blocks. It is freed by whoever ends the last owner.
class EngineBlock {
 public:
  EngineBlock(DeviceMemory memory, int& alive) : memory_(std::move(memory)), alive_(&alive) { ++*alive_; }
  EngineBlock(EngineBlock&& other) noexcept
      : memory_(std::move(other.memory_)), alive_(std::exchange(other.alive_, nullptr)) {}
  EngineBlock& operator=(EngineBlock&& other) noexcept {
    std::swap(memory_, other.memory_);
    std::swap(alive_, other.alive_);
    return *this;
  }
  ~EngineBlock() {
    if (alive_ != nullptr) --*alive_;
  }

  DeviceSpan<std::byte> bytes() noexcept { return memory_.bytes(); }
  Device device() const noexcept { return memory_.device(); }

 private:
  DeviceMemory memory_;
  int* alive_;
};

}  // namespace

template <>
inline constexpr bool devshare::is_key_exportable<EngineBlock> = true;

TEST_CASE("an engine's own block type is exported, kept alive by the key, and comes back") {
  Story story;
  story.actor("A", [](Actor& me) {
    const Party a(me);
    int alive = 0;
    SharedMemoryKey<EngineBlock> key =
        me.must(export_key(EngineBlock(a.allocate(pattern(4 * KiB)), alive)), "the block is exported");
    me.expect_equal(alive, 1, "the key has the block");
    a.share_with("B", key);
    me.pause_until("B", "closed");
    {
      EngineBlock block = me.must(std::move(key).close(), "A closes");
      me.expect_equal(alive, 1, "the block is back");
      me.expect(a.read(block.bytes()) == pattern(4 * KiB, 1), "with what B wrote");
      auto again = me.must(export_key_unrestricted(std::move(block)), "it can be exported again");
      me.expect_equal(alive, 1, "by the same block");
    }
    me.expect_equal(alive, 0, "a key that ends, ends its block");
    me.expect_equal(on_both_devices(), 0U, "the devices are empty");
    a.leave();
  });
  story.actor("B", [](Actor& me) {
    const Party b(me);
    b.introduce_myself_to("A");
    ImportedMapping mapping = b.import(b.ticket_from("A"));
    me.expect(b.read(mapping.bytes()) == pattern(4 * KiB), "B reads the engine's block");
    b.write(mapping.bytes(), pattern(4 * KiB, 1));
    me.must(std::move(mapping).close(), "B closes");
    b.leave();
    me.step("closed");
  });
  story.run();
}

TEST_CASE("memory that somebody else owns is exported by promise, and the key frees nothing") {
  Story story;
  story.actor("A", [](Actor& me) {
    const Party a(me);
    DeviceMemory memory = a.allocate(pattern(4 * KiB));
    auto key = me.must(export_key(UnownedMemory::promise_outlives(a.device, memory.bytes())), "A exports");
    a.share_with("B", key);
    me.pause_until("B", "closed");
    const UnownedMemory promise = me.must(std::move(key).close(), "A closes");
    me.expect(promise.bytes().data() == memory.bytes().data() && promise.size() == memory.size(),
              "the promise is back");
    me.expect(a.read(memory.bytes()) == pattern(4 * KiB), "and the memory where it was");
    { auto dropped = me.must(export_key(UnownedMemory(promise)), "a key of it may be dropped"); }
    me.expect_equal(host::counters().allocations, 1U, "and nothing is freed by that either");
    me.must(std::move(memory).close(), "its owner frees it");
    a.leave();
  });
  story.actor("B", [](Actor& me) {
    const Party b(me);
    b.introduce_myself_to("A");
    ImportedMapping mapping = b.import(b.ticket_from("A"));
    me.expect(b.read(mapping.bytes()) == pattern(4 * KiB), "B reads");
    me.must(std::move(mapping).close(), "B closes");
    b.leave();
    me.step("closed");
  });
  story.run();
}

TEST_CASE("what is dropped instead of closed is closed all the same, import and export (R21)") {
  Story story;
  story.actor("A", [](Actor& me) {
    const Party a(me);
    {
      auto key = me.must(export_key(a.allocate(pattern(4 * KiB))), "A exports");
      a.share_with("B", key);
      me.pause_until("B", "dropped");
    }
    me.expect_equal(on_both_devices(), 0U, "the devices are empty");
    a.leave();
  });
  story.actor("B", [](Actor& me) {
    const Party b(me);
    b.introduce_myself_to("A");
    const ReceivedTicket ticket = b.ticket_from("A");
    {
      const ImportedMapping mapping = b.import(ticket);
      const ImportedMapping same = b.import(ticket);
      me.expect(mapping.bytes().data() == same.bytes().data(), "two mappings of a ticket are at one address");
      me.expect_equal(host::counters().key_opens, 1U, "and one import of the runtime");
    }
    b.leave();
    me.step("dropped");
  });
  story.run();
}

TEST_CASE("a hundred keys are shared, read and closed, one after the other, and nothing adds up") {
  Story story;
  story.actor("A", [](Actor& me) {
    const Party a(me);
    const BarePid b = a.pid_of("B");
    std::size_t descriptors = 0;
    for (std::size_t round = 0; round < 100; ++round) {
      auto key = me.must(export_key(a.allocate(pattern(4 * KiB, round))), "A exports");
      a.send("B", me.must(key.admit(b), "B is admitted"));
      me.receive<char>("B");
      me.must(me.must(std::move(key).close(), "A closes").close(), "and frees");
      if (round == 0) descriptors = count_descriptors();
    }
    me.expect_equal(count_descriptors(), descriptors, "A has the descriptors that it had after the first");
    me.step("counted");
    a.leave();
  });
  story.actor("B", [](Actor& me) {
    const Party b(me);
    b.introduce_myself_to("A");
    std::size_t descriptors = 0;
    for (std::size_t round = 0; round < 100; ++round) {
      ImportedMapping mapping = b.import(b.ticket_from("A"));
      me.expect(b.read(mapping.bytes()) == pattern(4 * KiB, round), "B reads the bytes of this round");
      me.must(std::move(mapping).close(), "B closes");
      me.send("A", 'x');
      if (round == 0) descriptors = count_descriptors();
    }
    me.expect_equal(count_descriptors(), descriptors, "B has the descriptors that it had after the first");
    me.pause_until("A", "counted");
    b.leave();
  });
  story.run();
}

// --- peer access that the importer gives ----------------------------------------------------------------------------

TEST_CASE("an import with the importer's own PeerAccess enables nothing, and keeps the access until it is closed") {
  Story story;
  story.actor("A", [](Actor& me) {
    const Party a(me);
    auto key = me.must(export_key(a.allocate(pattern(4 * KiB))), "A exports");
    a.share_with("B", key);
    me.pause_until("B", "closed");
  });
  story.actor("B", [](Actor& me) {
    const Party b(me, 1);
    const Device owner = b.other_device(0);
    b.introduce_myself_to("A");
    const ReceivedTicket ticket = b.ticket_from("A");
    PeerAccess access = me.must(PeerAccess::both_ways(b.device, owner), "the devices may reach each other");
    me.expect_equal(host::counters().peer_grants, 2U, "by one grant each way");
    host::record_calls(true);
    ImportedMapping mapping = me.must(ImportedMapping::open(ticket, b.device, std::move(access)), "B imports with it");
    for (const host::CallRecord& call : host::recorded_calls()) {
      if (call.call != acl::Entry::aclrtIpcMemImportByKey) continue;
      me.expect(call.arguments.find("\"flags\":0") != std::string::npos, "without the flag: " + call.arguments);
    }
    me.expect_equal(calls_of(acl::Entry::aclrtIpcMemImportByKey), 1U, "there was one import");
    me.expect_equal(calls_of(acl::Entry::aclrtDeviceEnablePeerAccess), 0U, "and nothing was enabled for it");
    host::record_calls(false);
    const std::span<std::byte> seen = b.view(mapping.bytes());
    me.expect(Bytes(seen.begin(), seen.end()) == pattern(4 * KiB), "B's kernel reads");
    me.expect_equal(host::counters().peer_grants, 2U, "the mapping keeps the grant");
    me.must(std::move(mapping).close(), "B closes");
    me.expect_equal(host::counters().peer_grants, 0U, "the grant ends with it");
    b.leave();
    me.step("closed");
  });
  story.run();
}

TEST_CASE("a PeerAccess that does not join the two devices is a peer_mismatch, before any call") {
  constexpr Refusal mismatch{Errc::peer_mismatch};
  Story story;
  story.actor("A", [](Actor& me) {
    const Party a(me, 0, {{"DEVICES", "3"}});
    auto key = me.must(export_key(a.allocate(4 * KiB)), "A exports");
    a.share_with("B", key);
    me.pause_until("B", "done");
  });
  story.actor("B", [&](Actor& me) {
    const Party b(me, 1, {{"DEVICES", "3"}});
    const Device owner = b.other_device(0);
    const Device third = b.other_device(2);
    b.introduce_myself_to("A");
    const ReceivedTicket ticket = b.ticket_from("A");
    const auto open = [&](const Device& device, Result<PeerAccess> access) {
      return ImportedMapping::open(ticket, device, me.must(std::move(access), "the access is enabled"));
    };
    host::record_calls(true);
    b.refused(open(b.device, PeerAccess::both_ways(b.device, third)), mismatch, "access to a third device");
    b.refused(open(b.device, PeerAccess::both_ways(owner, third)), mismatch, "access between two others");
    b.refused(open(b.device, PeerAccess::half(b.device, owner)), mismatch, "the importer's half alone (R45)");
    b.refused(open(b.device, PeerAccess::half(owner, b.device)), mismatch, "the other half alone");
    b.refused(open(owner, PeerAccess::both_ways(b.device, owner)), mismatch, "on the owner's device there is no pair");
    me.expect_equal(calls_of(acl::Entry::aclrtIpcMemImportByKey), 0U, "the runtime was not asked");
    host::record_calls(false);
    me.expect_equal(host::counters().peer_grants, 0U, "a grant ends with the refusal it met");
    ImportedMapping mapping =
        me.must(open(b.device, PeerAccess::both_ways(owner, b.device)), "the right pair, turned round");
    me.must(std::move(mapping).close(), "B closes");
    b.leave();
    me.step("done");
  });
  story.run();
}

TEST_CASE("two mappings of a key, one by flag and one by grant, end in either order") {
  Story story;
  story.actor("A", [](Actor& me) {
    const Party a(me);
    auto key = me.must(export_key(a.allocate(pattern(4 * KiB))), "A exports");
    a.share_with("B", key);
    me.pause_until("B", "done");
  });
  story.actor("B", [](Actor& me) {
    const Party b(me, 1);
    const Device owner = b.other_device(0);
    b.introduce_myself_to("A");
    const ReceivedTicket ticket = b.ticket_from("A");
    const auto by_grant = [&] {
      return me.must(ImportedMapping::open(ticket, b.device, me.must(PeerAccess::both_ways(b.device, owner), "access")),
                     "by grant");
    };
    for (const bool grant_first : {true, false}) {
      std::optional<ImportedMapping> first(grant_first ? by_grant() : b.import(ticket));
      std::optional<ImportedMapping> second(grant_first ? b.import(ticket) : by_grant());
      me.expect_equal(host::counters().key_opens, 1U, "both are one import");
      first.reset();
      me.must(second->check(), "the other is as good as before");
      const std::span<std::byte> seen = b.view(second->bytes());
      me.expect(Bytes(seen.begin(), seen.end()) == pattern(4 * KiB), "a kernel reads by it");
      second.reset();
      b.has_given_everything_back();
    }
    b.leave();
    me.step("done");
  });
  story.run();
}

// --- refused steps --------------------------------------------------------------------------------------------------

TEST_CASE("B045 a step that the runtime refuses gives its object back, as good as before") {
  constexpr Refusal injected{Errc::refused, code::rt_drv_internal, Reason::injected};
  Story story;
  story.actor("A", [&](Actor& me) {
    const Party a(me);
    host::fail(acl::Entry::aclrtIpcMemGetExportKey, 1, code::rt_drv_internal);
    auto refused_export = export_key(a.allocate(pattern(4 * KiB)));
    if (refused_export) me.fail("the export was to be refused");
    me.expect_equal(refused_export.error().error().acl_code(), code::rt_drv_internal, "the export is refused");
    DeviceMemory memory = std::move(refused_export).error().take_back();
    me.expect(a.read(memory.bytes()) == pattern(4 * KiB), "the memory is back");
    auto key = me.must(export_key(std::move(memory)), "and can be exported now");

    const BarePid b = a.pid_of("B");
    host::fail(acl::Entry::aclrtIpcMemSetImportPid, 1, code::rt_drv_internal);
    a.refused(key.admit(b), injected, "the admission is refused");
    a.send("B", me.must(key.admit(b), "and works now"));
    me.pause_until("B", "imported");

    host::fail(acl::Entry::aclrtIpcMemClose, 1, code::rt_drv_internal);
    auto refused_close = std::move(key).close();
    if (refused_close) me.fail("the close was to be refused");
    me.expect(refused_close.error().kind() == Errc::refused, "the close is refused");
    auto same_key = std::move(refused_close).error().take_back();
    a.send("B", me.must(same_key.admit(b, Slice{10, 20}), "the key is whole: it admits"));
    me.pause_until("B", "closed");
    me.must(me.must(std::move(same_key).close(), "it closes").close(), "and gives its memory back");
    me.expect_equal(a.runtime.parked().objects, 0U, "nothing was parked");
    a.leave();
  });
  story.actor("B", [&](Actor& me) {
    const Party b(me);
    b.introduce_myself_to("A");
    const ReceivedTicket ticket = b.ticket_from("A");
    host::fail(acl::Entry::aclrtIpcMemImportByKey, 1, code::rt_drv_internal);
    b.refused(ImportedMapping::open(ticket, b.device), injected, "the import is refused");
    b.has_given_everything_back();
    ImportedMapping mapping = b.import(ticket);
    me.step("imported");
    ImportedMapping part = b.import(b.ticket_from("A"));
    me.expect(b.read(part.bytes()) == pattern(20, 0, 10), "the slice is readable");
    me.must(std::move(part).close(), "the slice is closed");
    host::fail(acl::Entry::aclrtIpcMemClose, 1, code::rt_drv_internal);
    b.refused(std::move(mapping).close(), injected, "the last close is refused, and reported");
    me.step("closed");
  });
  story.run();
}

TEST_CASE("a key that cannot be closed parks its memory when it is dropped: leaked, but nobody else's") {
  Story story;
  story.actor("A", [](Actor& me) {
    const Party a(me);
    struct Reports {
      int parked = 0;
      int others = 0;
    } reports;
    set_diagnostic_handler({[](const Diagnostic& diagnostic, void* user) {
                              auto& seen = *static_cast<Reports*>(user);
                              ++(diagnostic.event == DiagnosticEvent::memory_parked ? seen.parked : seen.others);
                            },
                            &reports});
    {
      auto key = me.must(export_key(a.allocate(pattern(4 * KiB))), "A exports");
      a.share_with("B", key);
      me.pause_until("B", "imported");
      host::fail(acl::Entry::aclrtIpcMemClose, 1, code::rt_drv_internal);
    }
    me.expect(reports.parked == 1 && reports.others == 0, "it is reported, once");
    me.expect_equal(a.runtime.parked().objects, 1U, "one object is parked");
    me.expect_equal(a.runtime.parked().bytes, 4 * KiB, "with its bytes");
    me.expect_equal(host::counters().allocations, 1U, "the memory is not freed");
    me.step("parked");
    me.pause_until("B", "closed");
    set_diagnostic_handler({});
  });
  story.actor("B", [](Actor& me) {
    const Party b(me);
    b.introduce_myself_to("A");
    ImportedMapping mapping = b.import(b.ticket_from("A"));
    me.step("imported");
    me.pause_until("A", "parked");
    me.must(mapping.check(), "the memory is there");
    me.expect(b.read(mapping.bytes()) == pattern(4 * KiB), "with its bytes");
    me.must(std::move(mapping).close(), "B closes");
    b.leave();
    me.step("closed");
  });
  story.run();
}
