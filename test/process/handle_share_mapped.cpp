// SPDX-License-Identifier: Apache-2.0
// What processes do with handles they share: map them, copy through them, and let go, in any number and order.
#include "handle_process.hpp"
#include "support/catch.hpp"
#include "support/sanitizers.hpp"

#include <string>
#include <vector>

using namespace devshare;
using namespace devshare::test;
using namespace std::chrono_literals;

namespace {

// A range of addresses with room for `count` pieces.
void* reserve(Actor& me, std::size_t count = 1) {
  void* range = nullptr;
  me.expect_equal(api().aclrtReserveMemAddress(&range, count * handle_size, 0, nullptr, 0), 0, "a reservation");
  return range;
}

void* piece(void* range, std::size_t index) { return static_cast<char*>(range) + index * handle_size; }

acl::aclError map(void* address, Handle handle) { return api().aclrtMapMem(address, handle_size, 0, handle, 0); }

}  // namespace

TEST_CASE("both processes map a handle and see each other's bytes, also after its exporter has let go") {
  Story story;
  story.actor("A", [](Actor& me) {
    const HandleProcess a(me);
    const Handle handle = a.make();
    void* const range = reserve(me);
    me.expect_equal(map(range, handle), 0, "A maps it");
    a.fill(range, 'a', handle_size);
    me.send("B", a.share(handle));
    me.pause_until("B", "wrote");
    me.expect_equal(a.peek(range, handle_size - 1), 'b', "A sees what B wrote");
    me.expect_equal(api().aclrtUnmapMem(range), 0, "A unmaps it");
    me.expect_equal(api().aclrtReleaseMemAddress(range), 0, "and releases the range");
    a.release(handle);
    me.step("let go");
    me.pause_until("B", "done");
  });
  story.actor("B", [](Actor& me) {
    const HandleProcess b(me);
    const Handle handle = b.import(me.receive<Token>("A"));
    void* const range = reserve(me);
    me.expect_equal(map(range, handle), 0, "B maps it");
    b.release(handle);  // the mapping keeps it (R39)
    me.expect_equal(b.peek(range, handle_size - 1), 'a', "B sees what A wrote");
    b.fill(range, 'b', handle_size);
    me.step("wrote");
    me.pause_until("A", "let go");
    me.expect_equal(b.peek(range), 'b', "the memory outlives A's handle");
    me.expect_equal(host::bytes_in_use(0), handle_size, "and counts");
    me.expect_equal(api().aclrtUnmapMem(range), 0, "B unmaps it");
    me.expect_equal(api().aclrtReleaseMemAddress(range), 0, "and releases the range");
    me.expect_equal(host::bytes_in_use(0), std::uint64_t{0}, "nothing is in use");
    b.has_nothing_left();
    me.step("done");
  });
  story.run();
}

TEST_CASE("B033 one range takes handles of one origin: own, imported by V1, imported by V2 (R29)") {
  Story story;
  story.actor("A", [](Actor& me) {
    const HandleProcess a(me);
    for (const TokenKind kind : {TokenKind::v1, TokenKind::v1, TokenKind::v2}) {
      me.send("B", a.share(a.make(), open_to_all, kind));
    }
    me.pause_until("B", "done");
  });
  story.actor("B", [](Actor& me) {
    const HandleProcess b(me);
    const Handle by_v1 = b.import(me.receive<Token>("A"));
    const Handle also_by_v1 = b.import(me.receive<Token>("A"));
    const Handle by_v2 = b.import(me.receive<Token>("A"));
    const Handle own = b.make();
    void* const range = reserve(me, 4);
    me.expect_equal(map(piece(range, 0), by_v1), 0, "the first");
    me.expect_equal(map(piece(range, 1), also_by_v1), 0, "one of the same origin");
    for (const Handle other : {by_v2, own}) {
      b.refused(map(piece(range, 2), other), code::rt_drv_internal, Reason::mixed_memory, "one of another origin");
    }
    me.expect_equal(api().aclrtUnmapMem(piece(range, 0)), 0, "unmapped");
    me.expect_equal(api().aclrtUnmapMem(piece(range, 1)), 0, "and the range is empty");
    for (const Handle handle : {by_v1, also_by_v1, by_v2, own}) b.release(handle);
    me.expect_equal(api().aclrtReleaseMemAddress(range), 0, "released");
    b.has_nothing_left();
    me.step("done");
  });
  story.run();
}

TEST_CASE("B037 two parts of a process import, map and drop in turn for a thousand rounds, and leave nothing") {
  Story story(180s);
  constexpr int rounds = under_sanitizer() ? 100 : 1'000;
  story.actor("A", [](Actor& me) {
    const HandleProcess a(me);
    const Handle handle = a.make();
    me.send("B", a.share(handle));
    me.send("B", a.share(a.make(), open_to_all, TokenKind::v2));
    me.send("B", a.export_key(a.allocate(), open_to_all));
    me.pause_until("B", "done");
  });
  story.actor("B", [](Actor& me) {
    const HandleProcess b(me, {{"HANDLE_REIMPORT", "count"}});
    const Token first = me.receive<Token>("A");
    const Token second = me.receive<Token>("A");
    const Key key = me.receive<Key>("A");
    for (int round = 0; round < rounds; ++round) {
      const Handle one = b.import(first);
      const Handle other = b.import(round % 2 == 0 ? first : second);
      void* const by_key = b.import_key(key);
      void* const range = reserve(me);
      me.expect_equal(map(range, other), 0, "mapped");
      b.release(one);
      b.close(key);
      me.expect_equal(b.peek(range), 0, "the other's memory is there");
      me.expect_equal(b.peek(by_key), -1, "the key's is not");
      me.expect_equal(api().aclrtUnmapMem(range), 0, "unmapped");
      me.expect_equal(api().aclrtReleaseMemAddress(range), 0, "released");
      b.release(other);
      host::Counters left = host::counters();
      left.connections = 0;
      if (!me.expect(left == host::Counters{}, fmt::format("nothing is left after round {}", round))) break;
    }
    me.step("done");
  });
  story.run();
}

TEST_CASE("B055 a thousand imports live at once take as much address space as they are long, and as much memory once") {
  Story story(180s);
  constexpr std::size_t count = under_sanitizer() ? 100 : 1'000;
  story.actor("A", [](Actor& me) {
    const HandleProcess a(me, {{"RAISE_NOFILE", "1"}});
    for (std::size_t i = 0; i < count; ++i) me.send("B", a.share(a.make()));
    me.pause_until("B", "done");
  });
  story.actor("B", [](Actor& me) {
    const HandleProcess b(me, {{"RAISE_NOFILE", "1"}});
    std::vector<Handle> handles;
    std::vector<void*> ranges;
    for (std::size_t i = 0; i < count; ++i) {
      handles.push_back(b.import(me.receive<Token>("A")));
      ranges.push_back(reserve(me));
      me.expect_equal(map(ranges.back(), handles.back()), 0, "mapped");
    }
    me.expect_equal(host::counters().handles_imported, std::uint64_t{count}, "all are live");
    me.expect_equal(host::bytes_in_use(0), count * handle_size, "and count once");
    const auto first = reinterpret_cast<std::uintptr_t>(ranges.front());
    const auto last = reinterpret_cast<std::uintptr_t>(ranges.back());
    me.expect_equal(last - first, (count - 1) * handle_size, "one range lies behind the other");
    for (std::size_t i = 0; i < count; ++i) {
      me.expect_equal(api().aclrtUnmapMem(ranges[i]), 0, "unmapped");
      me.expect_equal(api().aclrtReleaseMemAddress(ranges[i]), 0, "released");
      b.release(handles[i]);
    }
    b.has_nothing_left();
    me.step("done");
  });
  story.run();
}
