// SPDX-License-Identifier: Apache-2.0
// Memory that an exporter sends to those it admits, when they are connected, before they ask: their imports need nobody,
// are refused as ever, and what nobody takes costs nobody his memory.
#include "handle_process.hpp"
#include "meeting.hpp"
#include "support/catch.hpp"
#include "support/descriptors.hpp"

#include "host/block.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <string>
#include <vector>

using namespace devshare;
using namespace devshare::test;

namespace {

// What a file has of the machine's memory, whoever keeps it.
class Pages {
 public:
  explicit Pages(int descriptor) : file_(::fcntl(descriptor, F_DUPFD_CLOEXEC, 0)) {}
  static Pages of_block(const void* memory) { return Pages(host::PinnedBlock(memory).descriptor()); }
  static Pages of_handle(Handle handle) { return Pages(host::physical_of(handle)->descriptor.get()); }

  bool there() const {
    struct stat status {};
    return ::fstat(file_.get(), &status) == 0 && status.st_blocks != 0;
  }

 private:
  host::UniqueFd file_;
};

// Of fresh memory, to an importer that learns of both.
void share_a_key_and_a_token(Actor& me, const HandleProcess& a, std::int32_t importer, TokenKind kind = TokenKind::v1) {
  const Key key = a.export_key(a.allocate(), listed);
  const Token token = a.share(a.make(), listed, kind);
  a.admit(key, importer);
  a.admit(token, importer);
  me.send("B", key);
  me.send("B", token);
}

}  // namespace

TEST_CASE("who is connected when it is admitted imports though the exporter has stopped since, and nobody else does") {
  Story story;
  story.stop("A", at("admitted"));
  story.resume("A", at("B", "imported"));
  story.actor("A", [](Actor& me) {
    const HandleProcess a(me);
    const std::int32_t importer = meet_importer(me, a);
    meet_importer(me, a, "C");
    void* memory = a.allocate();
    a.fill(memory, 'a');
    const Key key = a.export_key(memory, listed);
    a.admit(key, importer);
    const Handle handle = a.make();
    a.put(handle, 'h');
    const Token token = a.share(handle, listed, TokenKind::v2);
    a.admit(token, importer);
    for (const char* each : {"B", "C"}) me.send(each, key);
    me.send("B", token);
    me.step("admitted");
    me.pause_until("B", "done");
    me.pause_until("C", "refused");
  });
  story.actor("B", [](Actor& me) {
    const HandleProcess b(me, {{"DEADLINE_MS", "20000"}});
    meet_exporter(me, b);
    const Key key = me.receive<Key>("A");
    const Token token = me.receive<Token>("A");
    me.pause_until("A", "admitted");
    me.pause_until("C", "timed out");
    me.expect_equal(b.peek(b.import_key(key)), 'a', "the key opens the memory");
    me.expect_equal(b.get(b.import(token)), 'h', "and the token its own");
    me.step("imported");
    b.close(key);
    me.expect_equal(b.peek(b.import_key(key)), 'a', "once more, and A is asked");
    me.step("done");
  });
  story.actor("C", [](Actor& me) {
    const Process c(me, {{"DEADLINE_MS", "300"}});
    meet_exporter(me, c);
    const Key key = me.receive<Key>("A");
    me.pause_until("A", "admitted");
    c.import_fails(key, code::rt_drv_internal, Reason::timed_out);
    me.step("timed out");
    me.pause_until("B", "imported");
    c.import_fails(key, code::rt_drv_internal, Reason::not_admitted);
    me.step("refused");
  });
  story.run();
}

TEST_CASE("what was sent ahead is not taken when its key was closed, its memory or its handle freed since") {
  Story story;
  story.actor("A", [](Actor& me) {
    const HandleProcess a(me);
    const std::int32_t importer = meet_importer(me, a);
    void* closed = a.allocate();
    void* freed = a.allocate();
    const Key first = a.export_key(closed, listed);
    const Key second = a.export_key(freed, listed);
    const Handle handle = a.make();
    const Token token = a.share(handle, listed);
    a.admit(first, importer);
    a.admit(second, importer);
    a.admit(token, importer);
    a.close(first);
    a.free(freed);
    a.release(handle);
    me.send("B", first);
    me.send("B", second);
    me.send("B", token);
    me.pause_until("B", "done");
  });
  story.actor("B", [](Actor& me) {
    const HandleProcess b(me);
    meet_exporter(me, b);
    const auto first = me.receive<Key>("A");
    const auto second = me.receive<Key>("A");
    const auto token = me.receive<Token>("A");
    b.import_fails(first, code::rt_drv_internal, Reason::unknown_key);
    b.import_fails(second, code::rt_drv_internal, Reason::unknown_key);
    b.import_fails(token, code::rt_invalid_handle, Reason::unknown_key);
    b.has_nothing_left();
    me.step("done");
  });
  story.run();
}

TEST_CASE("what an exporter sent before it finalised or was killed is not taken") {
  for (const bool killed : {false, true}) {
    CAPTURE(killed);
    Story story;
    if (killed) story.kill("A", at("gone"));
    story.actor("A", [killed](Actor& me) {
      const HandleProcess a(me);
      share_a_key_and_a_token(me, a, meet_importer(me, a));
      if (!killed) a.finalize();
      me.step("gone");
      me.pause_until("B", "done");
    });
    story.actor("B", [killed](Actor& me) {
      const HandleProcess b(me);
      meet_exporter(me, b);
      const Key key = me.receive<Key>("A");
      const auto token = me.receive<Token>("A");
      killed ? me.pause_until_ended("A") : me.pause_until("A", "gone");
      b.import_fails(token, code::rt_invalid_handle, Reason::exporter_gone);
      b.import_fails(key, code::rt_drv_internal, Reason::exporter_gone);
      b.has_nothing_left();
      me.expect_equal(host::counters().connections, std::uint64_t{0}, "no connection either");
      me.step("done");
    });
    story.run();
  }
}

TEST_CASE("a key or a token that is not quite the one that was sent ahead is refused as ever") {
  Story story;
  story.actor("A", [](Actor& me) {
    const HandleProcess a(me);
    share_a_key_and_a_token(me, a, meet_importer(me, a), TokenKind::v2);
    me.pause_until("B", "done");
  });
  story.actor("B", [](Actor& me) {
    const HandleProcess b(me);
    meet_exporter(me, b);
    Key key = me.receive<Key>("A");
    const auto token = me.receive<Token>("A");
    key.bytes[60] = key.bytes[60] == '0' ? '1' : '0';  // in the secret
    b.import_fails(key, code::rt_drv_internal, Reason::unknown_key);
    b.import_fails(token.as(TokenKind::v1), code::rt_invalid_handle, Reason::wrong_token_kind);
    me.step("done");
  });
  story.run();
}

TEST_CASE("many that are sent ahead come in whatever order they are imported, and leave nothing") {
  constexpr int many = 40;
  Story story;
  story.actor("A", [](Actor& me) {
    const Process a(me);
    const std::int32_t importer = meet_importer(me, a);
    std::vector<void*> memory;
    std::vector<Key> keys;
    for (int i = 0; i < many; ++i) {
      memory.push_back(a.allocate());
      a.fill(memory.back(), static_cast<unsigned char>(i));
      keys.push_back(a.export_key(memory.back(), listed));
      a.admit(keys.back(), importer);
      me.send("B", keys.back());
    }
    me.pause_until("B", "done");
    for (const Key& key : keys) a.close(key);
    for (void* each : memory) a.free(each);
    me.expect_equal(host::counters().descriptors, std::uint64_t{0}, "no descriptor of A's is left");
  });
  story.actor("B", [](Actor& me) {
    const Process b(me);
    meet_exporter(me, b);
    const std::size_t before = count_descriptors();
    std::vector<std::pair<int, Key>> keys;
    for (int i = 0; i < many; ++i) keys.emplace_back(i, me.receive<Key>("A"));
    std::reverse(keys.begin() + 4, keys.end());
    for (const auto& [value, key] : keys) me.expect_equal(b.peek(b.import_key(key)), value, "each opens its own memory");
    for (const auto& [value, key] : keys) b.close(key);
    me.expect_equal(count_descriptors(), before, "no descriptor stays");
    me.step("done");
  });
  story.run();
}

TEST_CASE("memory that was sent ahead and that nobody took goes back to the machine when it ends") {
  Story story;
  story.actor("A", [](Actor& me) {
    const HandleProcess a(me);
    const std::int32_t importer = meet_importer(me, a);
    void* memory = a.allocate();
    void* finalised = a.allocate();
    for (void* each : {memory, finalised}) {
      a.fill(each, 'a');
      a.admit(a.export_key(each, listed), importer);
    }
    const Handle handle = a.make();
    a.put(handle, 'h');
    a.admit(a.share(handle, listed), importer);
    const Pages of_memory = Pages::of_block(memory);
    const Pages of_finalised = Pages::of_block(finalised);
    const Pages of_handle = Pages::of_handle(handle);
    me.expect(of_memory.there() && of_finalised.there() && of_handle.there(), "all have been written");
    a.free(memory);
    me.expect(!of_memory.there(), "a block goes with its free");
    a.release(handle);
    me.expect(!of_handle.there(), "a handle's memory with its last handle");
    a.finalize();
    me.expect(!of_finalised.there(), "and what is left with the session");
    me.step("gone");
  });
  story.actor("B", [](Actor& me) {
    const Process b(me);
    meet_exporter(me, b);
    me.pause_until("A", "gone");  // and never imports
  });
  story.run();
}

TEST_CASE("of what was sent ahead only what was read has been taken") {
  Story story;
  story.actor("A", [](Actor& me) {
    const HandleProcess a(me);
    const std::int32_t importer = meet_importer(me, a);
    void* first = a.allocate();
    void* second = a.allocate();
    Key keys[2];
    for (void* each : {first, second}) {
      a.fill(each, 'a');
      Key& key = keys[each == second];
      key = a.export_key(each, listed);
      a.admit(key, importer);
    }
    const Pages of_first = Pages::of_block(first);
    const Pages of_second = Pages::of_block(second);
    me.send("B", keys[0]);
    me.pause_until("B", "imported");
    a.free(first);
    a.free(second);
    me.expect(of_first.there(), "the first, which B has");
    me.expect(!of_second.there(), "and not the second");
    me.step("freed");
  });
  story.actor("B", [](Actor& me) {
    const Process b(me);
    meet_exporter(me, b);
    b.import_key(me.receive<Key>("A"));
    me.step("imported");
    me.pause_until("A", "freed");
  });
  story.run();
}

TEST_CASE("memory that somebody has stays whole, whoever has not looked at what he was sent") {
  struct Holder {
    bool asks;          // or takes what it was sent
    const char* state;  // where it is counted
  };
  for (const Holder& holder : {Holder{false, ""}, Holder{true, ""}, Holder{false, "none"}, Holder{true, "none"}}) {
    CAPTURE(holder.asks, holder.state);
    Story story;
    story.actor("A", [&holder](Actor& me) {
      const HandleProcess a(me);
      const std::int32_t taker = holder.asks ? me.receive<std::int32_t>("B") : meet_importer(me, a, "B");
      const std::int32_t other = meet_importer(me, a, "C");
      void* memory = a.allocate();
      a.fill(memory, 'k');
      const Key key = a.export_key(memory, listed);
      const Handle handle = a.make();
      a.put(handle, 'h');
      const Token token = a.share(handle, listed);
      for (const std::int32_t importer : {taker, other}) {
        a.admit(key, importer);
        a.admit(token, importer);
      }
      me.send("B", key);
      me.send("B", token);
      me.pause_until("B", "imported");
      a.free(memory);
      a.release(handle);
      me.step("freed");
      me.pause_until("B", "read");
    });
    story.actor("B", [&holder](Actor& me) {
      const HandleProcess b(me, holder.state[0] != '\0' ? Switches{{"STATE", holder.state}} : Switches{});
      if (holder.asks) {
        me.send("A", b.bare_pid());
      } else {
        meet_exporter(me, b);
      }
      void* memory = b.import_key(me.receive<Key>("A"));
      const auto* const view = reinterpret_cast<const unsigned char*>(host::PinnedBlock(memory).view());
      const Handle handle = b.import(me.receive<Token>("A"));
      me.step("imported");
      me.pause_until("A", "freed");
      me.expect_equal(b.get(handle), 'h', "the handle's bytes are what they were");
      me.expect_equal(int{*view}, int{'k'}, "and the view's, stale as they are (R20)");
      me.step("read");
    });
    story.actor("C", [](Actor& me) {
      const HandleProcess c(me);
      meet_exporter(me, c);
      me.pause_until("B", "read");
    });
    story.run();
  }
}

TEST_CASE("a process on another server is sent nothing ahead, and refused when it asks") {
  Story story;
  story.actor("A", [](Actor& me) {
    const HandleProcess a(me, {{"PROFILE", "a3"}, {"SERVER", "1"}});
    const Token greeting = a.share(a.make(), open_to_all, TokenKind::fabric);
    me.send("B", greeting);
    const auto importer = me.receive<std::int32_t>("B");
    const Key key = a.export_key(a.allocate(), listed);
    a.admit(key, importer);
    me.send("B", key);
    me.pause_until("B", "done");
  });
  story.actor("B", [](Actor& me) {
    const HandleProcess b(me, {{"PROFILE", "a3"}, {"SERVER", "2"}});
    b.release(b.import(me.receive<Token>("A")));
    me.send("A", b.bare_pid());
    b.import_fails(me.receive<Key>("A"), code::rt_drv_internal, Reason::other_server);
    me.step("done");
  });
  story.run();
}
