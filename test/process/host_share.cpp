// SPDX-License-Identifier: Apache-2.0
// Sharing by key between processes of the host runtime: two, several, and many at once.
#include "key_process.hpp"
#include "support/catch.hpp"
#include "support/sanitizers.hpp"

#include <array>
#include <atomic>
#include <barrier>
#include <string>
#include <thread>
#include <vector>

using namespace devshare;
using namespace devshare::test;
using namespace std::chrono_literals;

TEST_CASE("B reads and writes what A allocated, admitted it to, and takes back") {
  Story story;
  story.actor("A", [](Actor& me) {
    const Process a(me);
    void* memory = a.allocate(3 << 20);
    a.fill(memory, 'a', 3 << 20);
    const Key key = a.export_key(memory, listed, 3 << 20);
    a.admit(key, me.receive<std::int32_t>("B"));
    me.send("B", key);
    me.pause_until("B", "closed");
    me.expect_equal(a.peek(memory, (3 << 20) - 1), 'b', "A sees what B wrote");
    a.close(key);
    a.free(memory);
    me.expect_equal(host::counters().descriptors, std::uint64_t{0}, "no descriptor of A's is left");
  });
  story.actor("B", [](Actor& me) {
    const Process b(me);
    me.send("A", b.bare_pid());
    const Key key = me.receive<Key>("A");
    void* memory = b.import_key(key);
    me.expect_equal(b.peek(memory), 'a', "B sees what A wrote");
    me.expect_equal(b.peek(memory, (3 << 20) - 1), 'a', "to its end");
    me.expect_equal(b.peek(memory, 3 << 20), -1, "and nothing behind it");
    b.fill(memory, 'b', 3 << 20);
    b.close(key);
    me.expect_equal(b.peek(memory), -1, "a closed address is no memory");
    me.step("closed");
  });
  story.run();
}

TEST_CASE("only the exporter admits, and only who imported closes (R17, R24)") {
  Story story;
  story.actor("A", [](Actor& me) {
    const Process a(me);
    void* memory = a.allocate();
    const Key key = a.export_key(memory, open_to_all);
    const Key narrow = a.export_key(memory, listed);
    me.send("B", key);
    me.send("B", narrow);
    me.pause_until("B", "done");
    me.expect_equal(host::counters().keys_exported, std::uint64_t{2}, "B has closed none of A's keys");
  });
  story.actor("B", [](Actor& me) {
    const Process b(me);
    const Key key = me.receive<Key>("A");
    const Key narrow = me.receive<Key>("A");
    std::int32_t pid = b.bare_pid();
    me.expect_equal(api().aclrtIpcMemSetImportPid(narrow.bytes, &pid, 1), code::rt_drv_internal, "B admits itself");
    me.expect_equal(host::last_cause().reason, Reason::not_the_exporter, "why not");
    me.expect_equal(api().aclrtIpcMemClose(key.bytes), code::rt_drv_internal, "a close without an import");
    void* first = b.import_key(key);
    void* second = b.import_key(key);
    me.expect(first == second, "a second import is the same address");
    me.expect_equal(host::counters().connections, std::uint64_t{1}, "over one connection");
    b.close(key);
    me.expect_equal(b.peek(first), 0, "one import is left");
    b.close(key);
    me.expect_equal(api().aclrtIpcMemClose(key.bytes), code::rt_drv_internal, "one close too many");
    me.expect_equal(host::last_cause().reason, Reason::not_imported, "why not");
    me.step("done");
  });
  story.run();
}

TEST_CASE("a hundred keys of one process come over one connection, and the importer's numbers go back to nothing") {
  Story story;
  story.actor("A", [](Actor& me) {
    const Process a(me);
    const std::int32_t b = me.receive<std::int32_t>("B");
    for (int i = 0; i < 100; ++i) {
      void* memory = a.allocate();
      a.fill(memory, static_cast<unsigned char>(i));
      const Key key = a.export_key(memory, listed);
      a.admit(key, b);
      me.send("B", key);
    }
    me.pause_until("B", "imported");
    me.expect_equal(host::counters().connections, std::uint64_t{1}, "one importer, one connection");
    me.step("counted");
    me.pause_until("B", "done");
  });
  story.actor("B", [](Actor& me) {
    const Process b(me);
    me.send("A", b.bare_pid());
    std::vector<Key> keys;
    for (int i = 0; i < 100; ++i) {
      keys.push_back(me.receive<Key>("A"));
      me.expect_equal(b.peek(b.import_key(keys.back())), i, "each key opens its own memory");
    }
    me.expect_equal(host::counters().connections, std::uint64_t{1}, "one exporter, one connection");
    me.step("imported");
    me.pause_until("A", "counted");
    for (const Key& key : keys) b.close(key);
    host::Counters left = host::counters();
    left.connections = 0;
    me.expect(left == host::Counters{}, "nothing is left but the connection");
    me.step("done");
  });
  story.run();
}

TEST_CASE("B076 eight threads that import a key for the first time get one address, ready for use") {
  Story story(120s);
  constexpr int rounds = under_sanitizer() ? 30 : 200;
  story.actor("A", [](Actor& me) {
    const Process a(me);
    void* memory = a.allocate();
    a.fill(memory, 'a');
    for (int i = 0; i < rounds; ++i) me.send("B", a.export_key(memory, open_to_all));
    me.pause_until("B", "done");
  });
  story.actor("B", [](Actor& me) {
    const Process b(me);
    std::vector<Key> keys;
    for (int i = 0; i < rounds; ++i) keys.push_back(me.receive<Key>("A"));
    std::barrier together(8);
    std::atomic<int> bad{0};
    std::array<std::atomic<void*>, rounds> address{};
    std::vector<std::thread> threads;
    for (int t = 0; t < 8; ++t) {
      threads.emplace_back([&] {
        if (api().aclrtSetDevice(0) != 0) ++bad;
        for (std::size_t i = 0; i < keys.size(); ++i) {
          together.arrive_and_wait();
          void* imported = nullptr;
          if (api().aclrtIpcMemImportByKey(&imported, keys[i].bytes, 1) != 0) ++bad;
          char byte = 0;
          if (api().aclrtMemcpy(&byte, 1, imported, 1, acl::memcpy_kind::device_to_host) != 0 || byte != 'a') ++bad;
          void* expected = nullptr;
          if (!address[i].compare_exchange_strong(expected, imported) && expected != imported) ++bad;
          together.arrive_and_wait();
          if (api().aclrtIpcMemClose(keys[i].bytes) != 0) ++bad;
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    me.expect_equal(bad.load(), 0, "every thread read at once, from the same address");
    me.expect_equal(host::counters().imports, std::uint64_t{0}, "all is closed");
    me.step("done");
  });
  story.run();
}

TEST_CASE("eight importers at once are all served, again and again") {
  Story story(180s);
  constexpr int rounds = under_sanitizer() ? 50 : 500;
  const std::vector<std::string> importers = {"B0", "B1", "B2", "B3", "B4", "B5", "B6", "B7"};
  story.actor("A", [importers](Actor& me) {
    const Process a(me);
    void* memory = a.allocate();
    a.fill(memory, 'a');
    const Key key = a.export_key(memory, listed);
    for (const std::string& importer : importers) a.admit(key, me.receive<std::int32_t>(importer));
    for (const std::string& importer : importers) me.send(importer, key);
    for (const std::string& importer : importers) me.pause_until(importer, "done");
    me.expect_equal(host::counters().connections, std::uint64_t{8}, "one connection each");
    me.step("looked");
  });
  for (const std::string& importer : importers) {
    story.actor(importer, [](Actor& me) {
      const Process b(me);
      me.send("A", b.bare_pid());
      const Key key = me.receive<Key>("A");
      for (int i = 0; i < rounds; ++i) {
        me.expect_equal(b.peek(b.import_key(key)), 'a', "the import works");
        b.close(key);
      }
      me.step("done");
      me.pause_until("A", "looked");
    });
  }
  story.run();
}
