// SPDX-License-Identifier: Apache-2.0
// Physical memory has several steps to each of its acts. Each step is made to fail in turn: nothing of the attempt may
// be left, the object that went in comes back, and trying again does everything once (B007).
#include "support/sharing.hpp"

#include <devshare/acl/codes.hpp>

#include <algorithm>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

using namespace devshare;
using namespace devshare::test;

namespace {

using acl::Entry;

constexpr std::size_t block = 2 * 1024 * 1024;
constexpr acl::aclError injected = acl::code::rt_drv_internal;

// The calls that change something, in the order in which they were made.
std::vector<Entry> changes() {
  static const std::vector<Entry> kinds{
      Entry::aclrtMallocPhysical, Entry::aclrtFreePhysical, Entry::aclrtReserveMemAddress,
      Entry::aclrtReleaseMemAddress, Entry::aclrtMapMem, Entry::aclrtUnmapMem, Entry::aclrtMemSetAccess,
      Entry::aclrtMemImportFromShareableHandle, Entry::aclrtMemImportFromShareableHandleV2};
  std::vector<Entry> made;
  for (const host::CallRecord& record : host::recorded_calls()) {
    const bool changes_something = std::find(kinds.begin(), kinds.end(), record.call) != kinds.end();
    if (changes_something && record.result == 0) made.push_back(record.call);
  }
  return made;
}

std::string in_words(const std::vector<Entry>& calls) {
  std::string text;
  for (const Entry call : calls) text += (text.empty() ? "" : ", ") + std::string(name_of(call));
  return text;
}

// One act: fails with `code` when `step` does, leaves what was there before, having undone `undo`; then succeeds.
struct Act {
  Entry step;
  std::vector<Entry> done_and_undone;
};

template <class Attempt>
void fails_whole_and_succeeds(const Party& b, const Act& act, const std::vector<Entry>& steps, Attempt attempt) {
  const std::string step(name_of(act.step));
  host::Counters before = host::counters();
  before.connections = 0;
  before.peer_grants = 0;
  host::record_calls(true);
  host::fail(act.step, 1, injected);
  const std::optional<Error> error = attempt(false);
  b.me.expect(error.has_value(), step + " was to fail");
  if (!error) return;
  b.me.expect_equal(error->acl_code(), injected, step + ": the code is told");
  b.me.expect(error->entry() == act.step, step + ": the call is told");
  host::Counters after = host::counters();
  after.connections = 0;
  after.peer_grants = 0;
  b.me.expect(before == after, step + ": nothing is left: " + host::in_words(after));
  b.me.expect_equal(in_words(changes()), in_words(act.done_and_undone), step + ": undone in reverse order");

  host::record_calls(true);
  const std::optional<Error> again = attempt(true);
  b.me.expect(!again.has_value(), step + ": the next attempt succeeds");
  b.me.expect_equal(in_words(changes()), in_words(steps), step + ": with every call once");
  host::record_calls(false);
}

template <class K>
auto token_of_a(const Party& a) {
  return a.me.must(export_handle<K>(a.map(pattern(block))), "A exports");
}

template <class K>
constexpr Entry import_call = std::is_same_v<K, v1> ? Entry::aclrtMemImportFromShareableHandle
                                                    : Entry::aclrtMemImportFromShareableHandleV2;

}  // namespace

TEMPLATE_TEST_CASE("B007 an import whose steps fail in turn leaves nothing, and succeeds when tried again", "", v1, v2) {
  constexpr Entry import = import_call<TestType>;
  const std::vector<Act> acts{
      {import, {}},
      {Entry::aclrtReserveMemAddress, {import, Entry::aclrtFreePhysical}},
      {Entry::aclrtMapMem,
       {import, Entry::aclrtReserveMemAddress, Entry::aclrtReleaseMemAddress, Entry::aclrtFreePhysical}},
      {Entry::aclrtMemSetAccess,
       {import, Entry::aclrtReserveMemAddress, Entry::aclrtMapMem, Entry::aclrtUnmapMem, Entry::aclrtReleaseMemAddress,
        Entry::aclrtFreePhysical}},
  };
  const std::vector<Entry> steps{import,
                                 Entry::aclrtReserveMemAddress,
                                 Entry::aclrtMapMem,
                                 Entry::aclrtMemSetAccess,
                                 Entry::aclrtUnmapMem,
                                 Entry::aclrtReleaseMemAddress,
                                 Entry::aclrtFreePhysical};
  import_story(token_of_a<TestType>, [&](const Party& b, const ReceivedTicket& ticket) {
    for (const Act& act : acts) {
      fails_whole_and_succeeds(b, act, steps, [&](bool) -> std::optional<Error> {
        auto mapping = ImportedMapping::open(ticket, b.device);
        if (!mapping) return mapping.error();
        ImportedMapping opened = *std::move(mapping);
        b.me.expect(b.read(opened.bytes()) == pattern(block), "the bytes are A's");
        b.me.must(std::move(opened).close(), "it closes");
        return std::nullopt;
      });
    }
  });
}

TEST_CASE("B007 a mapping whose steps fail in turn gives its handle back") {
  Story story;
  story.actor("A", [](Actor& me) {
    const Party a(me);
    PhysicalHandle handle = me.must(PhysicalHandle::allocate(a.device, block), "memory");
    const auto attempt = [&](bool) -> std::optional<Error> {
      auto mapped = Mapping::of(std::move(handle));
      if (mapped) {
        Mapping mapping = *std::move(mapped);
        handle = me.must(PhysicalHandle::retain_from(a.device, mapping.bytes()), "a reference is kept");
        me.must(std::move(mapping).close(), "the mapping ends");
        return std::nullopt;
      }
      auto refused = std::move(mapped).error();
      const Error error = refused.error();
      handle = std::move(refused).take_back();
      me.expect(handle.holds() && handle.size() == block, "the handle came back");
      return error;
    };
    const std::vector<Entry> steps{Entry::aclrtReserveMemAddress, Entry::aclrtMapMem, Entry::aclrtUnmapMem,
                                   Entry::aclrtReleaseMemAddress, Entry::aclrtFreePhysical};
    fails_whole_and_succeeds(a, {Entry::aclrtReserveMemAddress, {}}, steps, attempt);
    fails_whole_and_succeeds(a, {Entry::aclrtMapMem, {Entry::aclrtReserveMemAddress, Entry::aclrtReleaseMemAddress}},
                             steps, attempt);
    me.must(std::move(handle).close(), "the handle ends");
    a.leave();
  });
  story.run();
}

TEST_CASE("B085 a wake that fails at any of its pieces sleeps on, whole, and wakes when tried again") {
  constexpr std::size_t pieces = 3;
  Story story;
  story.actor("A", [](Actor& me) {
    const Party a(me);
    AddressReservation range = me.must(AddressReservation::reserve(a.device, pieces * block), "a range");
    const auto memory = [&] { return me.must(PhysicalHandle::allocate(a.device, block), "memory"); };
    auto first = std::move(range).map(memory());
    Mapping pool = me.must(std::move(first), "the first piece");
    for (std::size_t i = 1; i < pieces; ++i) me.must(pool.extend(memory()), "another piece");
    const auto address = pool.address();
    me.must(pool.release_backing(), "it sleeps");
    const host::Counters asleep = host::counters();
    for (const Entry call : {Entry::aclrtMallocPhysical, Entry::aclrtMapMem}) {
      for (std::uint32_t nth = 1; nth <= pieces; ++nth) {
        host::fail(call, nth, injected);
        auto woken = pool.restore();
        me.expect(!woken && woken.error().acl_code() == injected, "the wake fails");
        me.expect(pool.asleep() && host::counters() == asleep, "and sleeps on, with nothing left of the attempt");
      }
    }
    // B085: the caller is told what it was, and there is nothing that could be used by mistake.
    host::fail(Entry::aclrtMapMem, 2, acl::code::rt_memory_allocation);
    const auto full = pool.restore();
    me.expect(!full && full.error().kind() == Errc::out_of_memory, "a wake for which there is no room says so");
    me.expect(pool.bytes().empty() && pool.pieces() == 0, "and gives no bytes");
    me.expect(!pool.check() && pool.check().error().kind() == Errc::no_backing, "which can be asked, too");
    me.must(pool.restore(), "it wakes");
    me.expect(pool.address() == address && pool.size() == pieces * block, "at the same place, whole");
    a.write(pool.bytes(), pattern(pieces * block));
    me.expect(a.read(pool.bytes()) == pattern(pieces * block), "and good to use");

    host::fail(Entry::aclrtUnmapMem, 2, injected);
    auto slept = pool.release_backing();
    me.expect(!slept && slept.error().acl_code() == injected, "sleep fails at its second piece");
    me.expect(!pool.asleep() && a.read(pool.bytes()) == pattern(pieces * block), "and everything is mapped as before");
    me.must(std::move(pool).close(), "it ends");
    a.leave();
  });
  story.run();
}
