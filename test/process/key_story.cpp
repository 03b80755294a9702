// SPDX-License-Identifier: Apache-2.0
// Sharing by key as a program does it, through the typed layer: the story from allocation to the memory given back, and
// its variations. What goes wrong is in key_rules_*.cpp.
#include "support/descriptors.hpp"
#include "support/sharing.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>
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

TEST_CASE("B023 B031 slices of one key, at any offset, are the bytes that they name, whatever the pages are") {
  const Bytes content = pattern(1 * MiB, 7);
  const std::array<Slice, 6> slices{Slice{512 * KiB + 7, 100}, {0, 1},           {1 * MiB - 1, 1},
                                    {1, 1 * MiB - 1},          {64 * KiB, 4097}, {0, 0}};
  const std::string_view pages = GENERATE(as<std::string_view>(), "4K", "16K", "64K");
  CAPTURE(pages);
  Story story;
  story.actor("A", [&](Actor& me) {
    const Party a(me, 0, {{"NORMAL_PAGE", pages}});
    auto key = me.must(export_key(a.allocate(content)), "A exports");
    const BarePid b = a.pid_of("B");
    for (const Slice& slice : slices) a.send("B", me.must(key.admit(b, slice), "a slice is shared"));
    const Refusal outside{Errc::out_of_range};
    a.refused(key.admit(b, Slice{1 * MiB, 1}), outside, "a slice behind the block");
    a.refused(key.admit(b, Slice{0, 1 * MiB + 1}), outside, "a slice that leaves the block");
    a.refused(key.admit(b, Slice{1, 1 * MiB}), outside, "a slice that leaves the block by one byte");
    a.refused(key.admit(b, Slice{SIZE_MAX, 2}), outside, "a slice whose end overflows");
    me.expect_equal(key.admit(b, Slice{SIZE_MAX, 2}).error().detail().needed, UINT64_MAX, "which is no small number");
    a.refused(key.admit(b, Slice{7, 0}), outside, "an empty slice");
    me.pause_until("B", "closed");
    Bytes expected = content;
    expected[512 * KiB + 7] = std::byte{0xff};
    me.expect(a.read(key.bytes()) == expected, "A sees the byte that B wrote, and no other changed");
  });
  story.actor("B", [&](Actor& me) {
    const Party b(me, 0, {{"NORMAL_PAGE", pages}});
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

TEST_CASE("B027 offsets beyond 4 GiB arrive as they were sent", "[any library]") {
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

TEST_CASE("a hundred keys are shared, read and closed, one after the other, and nothing adds up", "[any library]") {
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
