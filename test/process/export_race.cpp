// SPDX-License-Identifier: Apache-2.0
// Exports from many threads and processes at once.
#include "support/sharing.hpp"

#include <atomic>
#include <functional>
#include <thread>
#include <vector>

using namespace devshare;
using namespace devshare::test;

namespace {

constexpr std::size_t threads = 16;
constexpr std::size_t exports = 5000;
constexpr std::size_t size = 4096;

// Every second export is of a block that all threads export, the others of a block of the thread's own.
void export_from_many_threads(const Party& party, const std::function<void()>& under_way) {
  const Bytes content = pattern(size);
  DeviceMemory of_all = party.allocate(content);
  std::atomic<std::size_t> begun{0};
  std::atomic<std::size_t> failed{0};
  std::vector<std::thread> all;
  for (std::size_t thread = 0; thread < threads; ++thread) {
    all.emplace_back([&] {
      auto allocated = DeviceMemory::allocate(party.device, size);
      if (!allocated) {
        ++failed;
        return;
      }
      DeviceMemory own = *std::move(allocated);
      for (;;) {
        const std::size_t number = begun++;
        if (number >= exports) break;
        if (number == exports / 10) under_way();
        const DeviceSpan<std::byte> block = number % 2 == 0 ? of_all.bytes() : own.bytes();
        auto key = export_key_unrestricted(UnownedMemory::promise_outlives(party.device, block));
        if (!key || !key->ticket() || !(*std::move(key)).close()) ++failed;
      }
    });
  }
  for (std::thread& thread : all) thread.join();
  party.me.expect_equal(failed.load(), std::size_t{0}, "no export fails, and no close");
  party.me.expect(party.read(of_all.bytes()) == content, "the block that all exported is as it was");
}

}  // namespace

TEST_CASE(
    "B082 sixteen threads export the same block and others, while another process begins to do so on another device",
    "[any library]") {
  Story story;
  story.actor("A", [](Actor& me) {
    const Party a(me);
    host::record_calls(true);
    export_from_many_threads(a, [&] { me.step("under way"); });
    if (host::active()) {
      me.expect_equal(calls_of(acl::Entry::aclrtIpcMemGetExportKey), exports, "each is an export of the runtime");
      me.expect_equal(calls_of(acl::Entry::aclrtIpcMemClose), exports, "with its own close");
    }
    host::record_calls(false);
    a.leave();
  });
  story.actor("B", [](Actor& me) {
    const Party b(me, 1);
    export_from_many_threads(b, [] {});
    b.leave();
  });
  story.start("B", at("A", "under way"));
  story.run();
}

TEST_CASE("B082 two exports of one block at a time are two keys of the same memory", "[any library]") {
  Story story;
  story.actor("A", [](Actor& me) {
    const Party a(me);
    {
      DeviceMemory memory = a.allocate(pattern(size, 1));
      const auto promised = [&] { return UnownedMemory::promise_outlives(a.device, memory.bytes()); };
      auto first = me.must(export_key_unrestricted(promised()), "it is exported");
      auto second = me.must(export_key_unrestricted(promised()), "and once more");
      const auto of_first = me.must(first.ticket(), "the first has a ticket");
      const auto of_second = me.must(second.ticket(), "and so has the second");
      me.expect(key_in(of_first).bytes != key_in(of_second).bytes, "they are two keys");
      a.send("B", of_first);
      a.send("B", of_second);
      me.pause_until("B", "has both");
      me.must(std::move(first).close(), "the first is closed");
      me.step("closed one");
      me.pause_until("B", "done");
      me.must(std::move(second).close(), "the second is closed");
    }
    a.leave();
  });
  story.actor("B", [](Actor& me) {
    const Party b(me);
    {
      ImportedMapping first = b.import(b.ticket_from("A"));
      ImportedMapping second = b.import(b.ticket_from("A"));
      b.write(first.bytes().first(10), pattern(10, 2));
      me.expect(b.read(second.bytes().first(10)) == pattern(10, 2), "both are the same memory");
      me.step("has both");
      me.pause_until("A", "closed one");
      me.expect(b.read(second.bytes().first(10)) == pattern(10, 2), "the other goes on without the one");
    }
    me.step("done");
    b.leave();
  });
  story.run();
}
