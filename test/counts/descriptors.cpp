// SPDX-License-Identifier: Apache-2.0
// Descriptors that sharing holds: one for each allocation, one for each process that is connected and one for each that
// was admitted, a few for the process itself, and for imports a bounded number however many there are.
#include "support/sharing.hpp"

#include <sys/resource.h>

#include <algorithm>

namespace test = devshare::test;
using devshare::SharedMemoryKey;
using test::Actor;
using test::count_descriptors;
using test::Party;

namespace {

constexpr std::size_t blocks = 40;
constexpr std::size_t importers = 3;
constexpr std::size_t most_fixed_ones = 8;  // of an exporting process, whatever it exports: socket, epoll, wake, page, ...
constexpr std::size_t most_cold_imports = 64;

std::string importer_name(std::size_t number) { return fmt::format("importer {}", number); }

}  // namespace

TEST_CASE("an exporter holds a descriptor for each allocation and two for each importing process") {
  test::Story story;
  story.actor("A", [](Actor& me) {
    const Party a(me);
    std::vector<devshare::DeviceMemory> memories;
    memories.push_back(a.allocate(4096));  // the first opens what the process keeps: the state of its devices
    const std::size_t at_start = count_descriptors() - 1;
    while (memories.size() < blocks) memories.push_back(a.allocate(4096));
    me.expect_equal(count_descriptors() - at_start, blocks, "an allocation holds one descriptor");
    for (auto& memory : memories) a.view(memory.bytes())[0] = std::byte{1};
    me.expect_equal(count_descriptors() - at_start, blocks, "and no other when it is mapped");

    std::vector<SharedMemoryKey<>> keys;
    keys.push_back(me.must(devshare::export_key(std::move(memories[0])), "the first is exported"));
    const std::size_t with_one_key = count_descriptors();
    me.expect(with_one_key - at_start - blocks <= most_fixed_ones,
              fmt::format("the first export costs {} descriptors", with_one_key - at_start - blocks));
    for (std::size_t i = 1; i < blocks; ++i) {
      keys.push_back(me.must(devshare::export_key(std::move(memories[i])), "the others are exported"));
    }
    me.expect_equal(count_descriptors(), with_one_key, "further exports cost none");

    std::vector<devshare::KeyTicket> tickets[importers];
    for (std::size_t n = 0; n < importers; ++n) {
      const devshare::BarePid pid = a.pid_of(importer_name(n));
      for (auto& key : keys) tickets[n].push_back(me.must(key.admit(pid), "the importer is admitted"));
      me.expect_equal(count_descriptors() - with_one_key, n + 1, "a process admitted to all keys costs one");
    }
    for (std::size_t n = 0; n < importers; ++n) {
      for (const auto& ticket : tickets[n]) a.send(importer_name(n), ticket);
    }
    for (std::size_t n = 0; n < importers; ++n) me.pause_until(importer_name(n), "imported");
    me.expect_equal(count_descriptors() - with_one_key, 2 * importers, "a connected process costs one more");
    me.expect_equal(devshare::host::counters().connections, std::uint64_t{importers}, "there is a connection for each");
    me.step("counted");
  });
  for (std::size_t n = 0; n < importers; ++n) {
    story.actor(importer_name(n), [](Actor& me) {
      const Party b(me);
      const std::size_t at_start = count_descriptors();
      b.introduce_myself_to("A");
      std::vector<devshare::ImportedMapping> mappings;
      for (std::size_t i = 0; i < blocks; ++i) {
        mappings.push_back(b.import(b.ticket_from("A")));
        b.view(mappings.back().bytes());
        me.expect_equal(count_descriptors() - at_start, std::size_t{1},
                        "one exporter costs one descriptor, a mapped import none");
      }
      me.step("imported");
      me.pause_until("A", "counted");
    });
  }
  story.run();
}

namespace {

// An importer whose descriptor limit is `limit` imports more keys than it may have descriptors, and uses each.
void import_many(Actor& me, rlim_t limit, std::size_t most_cold) {
  rlimit soft{};
  ::getrlimit(RLIMIT_NOFILE, &soft);
  soft.rlim_cur = std::min<rlim_t>(limit, soft.rlim_max);
  ::setrlimit(RLIMIT_NOFILE, &soft);
  const Party b(me);
  const std::size_t at_start = count_descriptors();
  b.introduce_myself_to("A");
  std::vector<devshare::ImportedMapping> mappings;
  std::size_t most = 0;
  for (;;) {
    const test::Bytes message = me.receive_bytes("A");
    if (message.empty()) break;
    const auto ticket = me.must(devshare::ReceivedTicket::decode(message), "the ticket arrives whole");
    mappings.push_back(b.import(ticket));
    most = std::max(most, count_descriptors() - at_start);
  }
  me.expect(most <= most_cold + 1, fmt::format("{} imports hold {} descriptors", mappings.size(), most));
  me.expect(mappings.size() > most_cold + 1, "that is fewer than imports");
  for (std::size_t i = 0; i < mappings.size(); ++i) {
    me.expect_equal(b.read(mappings[i].bytes().first(2)), test::pattern(2, i), "every one of them can be used");
  }
  me.step("done");
}

void export_many(Actor& me, std::size_t count) {
  const Party a(me);
  const devshare::BarePid pid = a.pid_of("B");
  std::vector<SharedMemoryKey<>> keys;
  for (std::size_t i = 0; i < count; ++i) {
    keys.push_back(me.must(devshare::export_key(a.allocate(test::pattern(2, i))), "the memory is exported"));
    a.send("B", me.must(keys.back().admit(pid), "the importer is admitted"));
  }
  me.send_bytes("B", nullptr, 0);
  me.pause_until("B", "done");
}

}  // namespace

TEST_CASE("cold imports hold a bounded number of descriptors (B051)") {
  test::Story story;
  story.actor("A", [](Actor& me) { export_many(me, 200); });
  story.actor("B", [](Actor& me) { import_many(me, 1024, most_cold_imports); });
  story.run();
}

TEST_CASE("with 64 descriptors a process can hold 200 imports (B051)") {
  test::Story story;
  story.actor("A", [](Actor& me) { export_many(me, 200); });
  story.actor("B", [](Actor& me) { import_many(me, 64, 64 / 8); });
  story.run();
}
