// SPDX-License-Identifier: Apache-2.0
// Ten thousand rounds of sharing a handle between two processes: what a process has grows in neither.
#include "support/sanitizers.hpp"
#include "support/sharing.hpp"
#include "support/soon.hpp"

#include <fstream>
#include <sstream>
#include <string>
#include <utility>

using namespace devshare;
using namespace devshare::test;

namespace {

constexpr std::size_t size = 2 * 1024 * 1024;
constexpr int warm_up = 50;  // what is made once and kept: connections, tables, arenas
constexpr int rounds = under_sanitizer() ? 500 : 10'000;

// What the kernel counts for this process.
struct Footprint {
  std::size_t descriptors = 0;
  std::size_t maps = 0;
  std::size_t address_space = 0;  // pages
  std::size_t resident = 0;       // pages

  static Footprint now() {
    Footprint found;
    found.descriptors = count_descriptors();
    std::ifstream maps("/proc/self/maps");
    for (std::string line; std::getline(maps, line);) ++found.maps;
    std::ifstream("/proc/self/statm") >> found.address_space >> found.resident;
    return found;
  }
};

// One descriptor may be in the hands of the service thread, a few pages come and go with the allocator; one a round
// would be thousands.
void stays_flat(Actor& me, const Footprint& before) {
  const Footprint after = Footprint::now();
  me.expect(after.descriptors <= before.descriptors + 1, "descriptors stay: " + std::to_string(before.descriptors) +
                                                             ", then " + std::to_string(after.descriptors));
  if (under_sanitizer()) return;  // its allocator keeps what was freed
  me.expect(after.maps <= before.maps + 5, "mappings stay: " + std::to_string(before.maps) + ", then " +
                                               std::to_string(after.maps));
  me.expect(after.address_space <= before.address_space + 512,
            "address space stays: " + std::to_string(before.address_space) + " pages, then " +
                std::to_string(after.address_space));
  me.expect(after.resident <= before.resident + 512, "memory stays: " + std::to_string(before.resident) +
                                                         " pages, then " + std::to_string(after.resident));
}

}  // namespace

TEST_CASE("thousands of rounds of allocate, map, export, import, unmap and close leave both processes as they were") {
  Story story;
  story.actor("A", [](Actor& me) {
    const Party a(me);
    const BarePid b = a.pid_of("B");
    Footprint before;
    for (int round = 0; round < warm_up + rounds; ++round) {
      if (round == warm_up) before = Footprint::now();
      auto token = me.must(export_handle<v2>(a.map(size)), "A exports");
      a.send("B", me.must(token.admit(b), "B is admitted"));
      me.receive<int>("B");  // it has closed
      me.must(me.must(std::move(token).close(), "A ends the export").close(), "and the mapping");
    }
    stays_flat(me, before);
    me.expect_equal(host::bytes_in_use(0), 0U, "the device is empty");
    a.leave();
  });
  story.actor("B", [](Actor& me) {
    const Party b(me);
    b.introduce_myself_to("A");
    Footprint before;
    for (int round = 0; round < warm_up + rounds; ++round) {
      if (round == warm_up) before = Footprint::now();
      ImportedMapping mapping = b.import(b.ticket_from("A"));
      const std::byte one{static_cast<unsigned char>(round)};
      b.write(mapping.bytes().first(1), {one});
      me.must(std::move(mapping).close(), "B closes");
      me.send("A", round);
    }
    stays_flat(me, before);
    b.leave();
  });
  story.run();
}
