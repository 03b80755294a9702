// SPDX-License-Identifier: Apache-2.0
// How sharing by key ends: by a close, a free, a finalize, a kill, or not at all because somebody has stopped.
#include "key_process.hpp"
#include "support/catch.hpp"
#include "support/sanitizers.hpp"

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

using namespace devshare;
using namespace devshare::test;
using namespace std::chrono_literals;

TEST_CASE("an exporter that closes or frees takes the memory from its importers at once (R18, R20, R22)") {
  Story story;
  story.actor("A", [](Actor& me) {
    const Process a(me);
    void* closed_early = a.allocate();
    void* freed_early = a.allocate();
    const Key first = a.export_key(closed_early, open_to_all);
    const Key second = a.export_key(freed_early, open_to_all);
    me.send("B", first);
    me.send("B", second);
    me.pause_until("B", "imported");
    a.close(first);
    a.free(freed_early);
    me.step("gone");
    me.pause_until("B", "done");
    a.close(second);
  });
  story.actor("B", [](Actor& me) {
    const Process b(me);
    const Key first = me.receive<Key>("A");
    const Key second = me.receive<Key>("A");
    void* one = b.import_key(first);
    void* two = b.import_key(second);
    b.fill(one, 1);
    b.fill(two, 2);
    me.step("imported");
    me.pause_until("A", "gone");
    b.is_lost(one);
    b.is_lost(two);
    b.import_fails(first, code::rt_drv_internal, Reason::exporter_gone);
    b.close(first);
    b.close(second);
    b.import_fails(first, code::rt_drv_internal, Reason::unknown_key);
    b.import_fails(second, code::rt_drv_internal, Reason::unknown_key);
    me.step("done");
  });
  story.run();
}

TEST_CASE("B003 B070 an exporter that is killed takes its memory along, and nobody hangs") {
  Story story;
  story.kill("A", at("exported"));
  story.actor("A", [](Actor& me) {
    const Process a(me);
    const Key key = a.export_key(a.allocate(), open_to_all);
    const Key other = a.export_key(a.allocate(), open_to_all);
    me.send("B", key);
    me.send("B", other);
    me.pause_until("B", "imported");
    me.step("exported");
  });
  story.actor("B", [](Actor& me) {
    const Process b(me);
    const Key key = me.receive<Key>("A");
    const Key other = me.receive<Key>("A");
    void* memory = b.import_key(key);
    me.expect_equal(b.peek(memory), 0, "the memory is there");
    me.step("imported");
    me.pause_until_ended("A");
    b.is_lost(memory);
    b.import_fails(other, code::rt_drv_internal, Reason::exporter_gone);
    b.import_fails(other, code::rt_drv_internal, Reason::exporter_gone);
    b.close(key);
    me.expect_equal(host::counters().imports, std::uint64_t{0}, "nothing is left in B");
    me.expect_equal(host::counters().connections, std::uint64_t{0}, "no connection either");
  });
  story.run();
}

TEST_CASE("B070 with EXPORTER_DEATH=keep importers keep the bytes of a killed exporter") {
  Story story;
  story.kill("A", at("exported"));
  story.actor("A", [](Actor& me) {
    const Process a(me);
    void* memory = a.allocate();
    a.fill(memory, 'k');
    me.send("B", a.export_key(memory, open_to_all));
    me.pause_until("B", "imported");
    me.step("exported");
  });
  story.actor("B", [](Actor& me) {
    const Process b(me, {{"EXPORTER_DEATH", "keep"}});
    void* memory = b.import_key(me.receive<Key>("A"));
    me.step("imported");
    me.pause_until_ended("A");
    me.expect_equal(b.peek(memory), 'k', "the bytes are there");
  });
  story.run();
}

TEST_CASE("an exporter that finalises takes its memory along, and serves again in its next session") {
  Story story;
  story.actor("A", [](Actor& me) {
    {
      const Process a(me);
      me.send("B", a.export_key(a.allocate(), open_to_all));
      me.pause_until("B", "imported");
      a.finalize();
      me.step("finalised");
      me.pause_until("B", "lost");
    }
    const Process a(me);
    me.send("B", a.export_key(a.allocate(), open_to_all));
    me.pause_until("B", "done");
  });
  story.actor("B", [](Actor& me) {
    const Process b(me);
    const Key key = me.receive<Key>("A");
    void* memory = b.import_key(key);
    me.step("imported");
    me.pause_until("A", "finalised");
    b.is_lost(memory);
    b.close(key);
    b.import_fails(key, code::rt_drv_internal, Reason::exporter_gone);
    me.step("lost");
    b.import_key(me.receive<Key>("A"));
    me.step("done");
  });
  story.run();
}

TEST_CASE("B068 importers that end or are killed change nothing for the others") {
  Story story;
  story.actor("A", [](Actor& me) {
    const Process a(me);
    void* memory = a.allocate();
    a.fill(memory, 'a');
    const Key key = a.export_key(memory, open_to_all);
    for (const char* importer : {"B", "C", "D"}) me.send(importer, key);
    me.pause_until_ended("B");
    me.pause_until_ended("C");
    me.expect(soon([] { return host::counters().connections == 0; }), "A forgets importers that ended");
    me.expect_equal(a.peek(memory), 'a', "A's memory is untouched");
    me.step("others ended");
    me.pause_until("D", "done");
  });
  story.kill("C", at("imported"));
  for (const char* importer : {"B", "C"}) {
    story.actor(importer, [](Actor& me) {
      const Process b(me);
      me.expect_equal(b.peek(b.import_key(me.receive<Key>("A"))), 'a', "the import works");
      me.step("imported");
    });
  }
  story.actor("D", [](Actor& me) {
    const Process d(me);
    const Key key = me.receive<Key>("A");
    me.pause_until("A", "others ended");
    me.expect_equal(d.peek(d.import_key(key)), 'a', "a later import works");
    me.step("done");
  });
  story.run();
}

TEST_CASE("B003 a stopped exporter costs its importers the deadline, all of them together, and is served by later") {
  Story story;
  story.stop("A", at("exported"));
  story.resume("A", at("B", "timed out"));
  story.actor("A", [](Actor& me) {
    const Process a(me);
    me.send("B", a.export_key(a.allocate(), open_to_all));
    me.send("B", a.export_key(a.allocate(), open_to_all));
    me.pause_until("B", "connected");
    me.step("exported");
    me.pause_until("B", "done");
  });
  story.actor("B", [](Actor& me) {
    const Process b(me, {{"DEADLINE_MS", "400"}});
    const Key first = me.receive<Key>("A");
    const Key second = me.receive<Key>("A");
    b.import_key(first);
    me.step("connected");
    me.pause_until("A", "exported");
    const auto started = std::chrono::steady_clock::now();
    std::atomic<int> timed_out{0};
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&] {
        void* imported = nullptr;
        if (api().aclrtSetDevice(0) == 0 &&
            api().aclrtIpcMemImportByKey(&imported, second.bytes, 1) == code::rt_drv_internal &&
            host::last_cause().reason == Reason::timed_out) {
          ++timed_out;
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    const auto took = std::chrono::steady_clock::now() - started;
    me.expect_equal(timed_out.load(), 4, "all four are told that A did not answer");
    me.expect(took >= 390ms, "not before the deadline");
    me.step("timed out");
    b.import_key(second);
    me.step("done");
  });
  story.run();
}

TEST_CASE("an importer has a deadline also at an exporter that it was not connected to") {
  Story story;
  story.stop("A", at("exported"));
  story.resume("A", at("B", "timed out"));
  story.actor("A", [](Actor& me) {
    const Process a(me);
    me.send("B", a.export_key(a.allocate(), open_to_all));
    me.step("exported");
    me.pause_until("B", "done");
  });
  story.actor("B", [](Actor& me) {
    const Process b(me, {{"DEADLINE_MS", "300"}});
    const Key key = me.receive<Key>("A");
    me.pause_until("A", "exported");
    b.import_fails(key, code::rt_drv_internal, Reason::timed_out);
    b.has_text("300 ms");
    me.step("timed out");
    b.import_key(key);
    me.step("done");
  });
  story.run();
}

TEST_CASE("B062 an exporter killed at any moment leaves nothing, and the next one serves") {
  constexpr int rounds = under_sanitizer() ? 5 : 20;
  for (int i = 0; i < rounds; ++i) {
    Story story;
    story.kill("X", at("born").plus(std::chrono::microseconds(300 * i)));
    story.start("Y", at("I", "X is gone"));
    story.actor("X", [](Actor& me) {
      me.step("born");
      const Process x(me);
      while (true) {
        void* memory = x.allocate();
        x.export_key(memory, open_to_all);
        x.free(memory);
      }
    });
    story.actor("Y", [](Actor& me) {
      const Process y(me);
      me.send("I", y.export_key(y.allocate(), open_to_all));
      me.pause_until("I", "done");
    });
    story.actor("I", [](Actor& me) {
      const Process importer(me);
      me.pause_until_ended("X");
      me.step("X is gone");
      importer.import_key(me.receive<Key>("Y"));
      me.step("done");
    });
    story.run();
  }
}
