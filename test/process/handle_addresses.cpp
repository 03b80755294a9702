// SPDX-License-Identifier: Apache-2.0
// B055: the addresses of a card are few enough to run out. An import takes those of its block and no more, one too many
// is an error that says so, and what ends gives its addresses back.
#include "support/sanitizers.hpp"
#include "support/sharing.hpp"

#include <algorithm>
#include <chrono>
#include <utility>
#include <vector>

using namespace devshare;
using namespace devshare::test;
using namespace std::chrono_literals;

namespace {

constexpr std::size_t MiB = std::size_t{1} << 20;
constexpr std::size_t block = 2 * MiB;
constexpr std::size_t imports = under_sanitizer() ? 100 : 1'000;
constexpr std::size_t budget = 8192 * MiB;
constexpr Refusal exhausted{Errc::address_space_exhausted, code::rt_memory_allocation, Reason::address_space};

template <class Held>
void end(Actor& me, Held held) {
  me.must(std::move(held).close(), "it ends");
}

void export_them(Actor& me) {
  const Party a(me, 0, {{"RAISE_NOFILE", "1"}});
  std::vector<ExportToken<v2, PhysicalHandle, Unrestricted>> tokens;
  for (std::size_t i = 0; i <= imports; ++i) {
    auto handle = me.must(PhysicalHandle::allocate(a.device, block), "memory");
    tokens.push_back(me.must(export_handle_unrestricted<v2>(std::move(handle)), "A exports"));
    a.send("B", me.must(tokens.back().ticket(), "a ticket"));
  }
  me.pause_until_ended("B");
  for (auto& token : tokens) end(me, me.must(std::move(token).close(), "A ends"));
  tokens.clear();
  a.leave();
}

}  // namespace

TEST_CASE(
    "B055 a thousand imports fit into 8 GiB of addresses, the first that does not is refused as such, and is not "
    "refused any more when there is room again") {
  Story story(180s);
  story.actor("A", &export_them);
  story.actor("B", [](Actor& me) {
    const Party b(me, 0, {{"RAISE_NOFILE", "1"}, {"ADDRESS_SPACE", "8G"}});
    std::vector<ReceivedTicket> tickets;
    for (std::size_t i = 0; i <= imports; ++i) tickets.push_back(b.ticket_from("A"));
    host::record_calls(true);
    std::vector<ImportedMapping> mappings;
    for (std::size_t i = 0; i < imports; ++i) mappings.push_back(b.import(tickets[i]));
    const auto calls = host::recorded_calls();
    host::record_calls(false);
    const auto reserves = [](const host::CallRecord& call) { return call.call == acl::Entry::aclrtReserveMemAddress; };
    me.expect_equal(static_cast<std::size_t>(std::count_if(calls.begin(), calls.end(), reserves)), imports,
                    "each has a range of its own");
    for (const host::CallRecord& call : calls) {
      if (reserves(call)) me.expect(call.arguments.find("\"size\":2097152") != std::string::npos, "of its own length");
    }

    auto rest = me.must(AddressReservation::reserve(b.device, budget - imports * block), "all that is left");
    const host::Counters full = host::counters();
    b.refused(ImportedMapping::open(tickets[imports], b.device), exhausted, "one more import");
    const auto refused = AddressReservation::reserve(b.device, block);
    b.refused(refused, exhausted, "a reservation");
    if (!refused)
      me.expect_equal(refused.error().detail().available, std::size_t{0}, "the error says how much is left");
    b.refused(DeviceMemory::allocate(b.device, block), exhausted, "memory with an address");
    end(me, me.must(PhysicalHandle::allocate(b.device, block), "memory without one needs none"));
    me.expect(host::counters() == full, "nothing is left of the attempts: " + host::in_words(host::counters()));

    end(me, std::move(mappings.front()));
    mappings.erase(mappings.begin());
    mappings.push_back(b.import(tickets[imports]));
    end(me, std::move(rest));
    for (ImportedMapping& mapping : mappings) end(me, std::move(mapping));
    mappings.clear();
    end(me, me.must(AddressReservation::reserve(b.device, budget), "and all of it is free again"));
    b.leave();
  });
  story.run();
}
