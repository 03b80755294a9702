// SPDX-License-Identifier: Apache-2.0
// How sharing of handles ends: by a free, a finalize, a kill, a fork. The memory stays with whoever holds it, the
// device's count is exact after each of them, and nobody hangs.
#include "handle_process.hpp"
#include "support/catch.hpp"
#include "support/child.hpp"
#include "support/sanitizers.hpp"

#include "host/state_layout.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <thread>
#include <vector>

using namespace devshare;
using namespace devshare::test;
using namespace std::chrono_literals;

namespace {

// After a story: a process that joins finds the devices empty.
void devices_are_empty(const Story& story) {
  const ChildEnd end = in_child(
      [] {
        demand(api().aclInit(nullptr) == 0, "the runtime starts");
        demand(host::device_state_scope() == "machine", "and sees what all processes have");
        demand(host::bytes_in_use(0) == 0 && host::bytes_in_use(1) == 0, "which is nothing");
        demand(api().aclFinalize() == 0, "the runtime ends");
      },
      {.set = {{"DEVSHARE_HOST_STATE", story.state_directory()}}});
  INFO(end.in_words());
  CHECK(end.good());
}

}  // namespace

TEST_CASE("an exporter killed at any step leaves its importer the memory it had imported, and nothing more") {
  for (const std::string step : {"made", "exported", "admitted", "sent", "freed"}) {
    CAPTURE(step);
    Story story;
    story.kill("A", at(step));
    story.actor("A", [step](Actor& me) {
      const HandleProcess a(me);
      const Handle handle = a.make();
      a.put(handle, 'a');
      me.step("made");
      const Token token = a.share(handle, listed);
      me.step("exported");
      a.admit(token, me.receive<std::int32_t>("B"));
      me.step("admitted");
      me.send("B", token);
      me.step("sent");
      me.pause_until("B", "imported");
      a.release(handle);
      me.step("freed");
    });
    story.actor("B", [step](Actor& me) {
      const HandleProcess b(me);
      me.send("A", b.bare_pid());
      const auto message = me.receive_if_sent("A");
      if (message) {
        Token token;
        me.expect_equal(message->size(), sizeof token, "a whole token");
        std::memcpy(static_cast<void*>(&token), message->data(), sizeof token);
        Handle handle = nullptr;
        const acl::aclError result = import_from(token, &handle);
        // Killed once the token was sent: before the import, in it, or after it.
        const bool gone = result == code::rt_invalid_handle && host::last_cause().reason == Reason::exporter_gone;
        me.expect(result == 0 || (step == "sent" && gone), fmt::format("imported, or told so: {}", result));
        me.step("imported");
        me.pause_until_ended("A");
        if (result == 0) {
          me.expect_equal(b.get(handle), 'a', "B has the memory still");
          me.expect_equal(host::bytes_in_use(0), handle_size, "and it counts");
          b.release(handle);
        }
        b.import_fails(token, code::rt_invalid_handle, Reason::exporter_gone);
      }
      me.pause_until_ended("A");
      me.expect_equal(host::bytes_in_use(0), std::uint64_t{0}, "nothing is in use");
      b.has_nothing_left();
    });
    story.run();
    devices_are_empty(story);
  }
}

TEST_CASE("an importer killed at any step changes nothing for the exporter and for others") {
  for (const std::string step : {"received", "imported", "freed"}) {
    CAPTURE(step);
    Story story;
    story.kill("B", at(step));
    story.actor("A", [](Actor& me) {
      const HandleProcess a(me);
      const Handle handle = a.make();
      a.put(handle, 'a');
      const Token token = a.share(handle);
      me.send("B", token);
      me.send("C", token);
      me.pause_until_ended("B");
      me.pause_until("C", "imported");
      me.expect_equal(host::bytes_in_use(0), handle_size, "it counts once");
      me.expect_equal(a.get(handle), 'a', "A's memory is untouched");
      a.release(handle);
      me.expect_equal(host::bytes_in_use(0), handle_size, "C has it");
      me.step("freed");
      me.pause_until("C", "freed");
      me.expect_equal(host::bytes_in_use(0), std::uint64_t{0}, "nobody has");
      a.has_nothing_left();
    });
    story.actor("B", [](Actor& me) {
      const HandleProcess b(me);
      const Token token = me.receive<Token>("A");
      me.step("received");
      const Handle handle = b.import(token);
      me.step("imported");
      b.release(handle);
      me.step("freed");
    });
    story.actor("C", [](Actor& me) {
      const HandleProcess c(me);
      const Token token = me.receive<Token>("A");
      me.pause_until_ended("B");
      const Handle handle = c.import(token);
      me.expect_equal(c.get(handle), 'a', "the import works");
      me.step("imported");
      me.pause_until("A", "freed");
      c.release(handle);
      c.has_nothing_left();
      me.step("freed");
    });
    story.run();
    devices_are_empty(story);
  }
}

TEST_CASE("all who hold a block are killed and its bytes are free at once") {
  Story story;
  const Switches small = {{"CAPACITY", "4M"}};
  story.kill("A", at("watcher", "full"));
  story.kill("B", at("watcher", "still full"));
  story.actor("A", [small](Actor& me) {
    const HandleProcess a(me, small);
    me.send("B", a.share(a.make(2 * handle_size)));
    me.pause_until("watcher", "never");
  });
  story.actor("B", [small](Actor& me) {
    const HandleProcess b(me, small);
    b.import(me.receive<Token>("A"));
    me.step("imported");
    me.pause_until("watcher", "never");
  });
  story.actor("watcher", [small](Actor& me) {
    const HandleProcess watcher(me, small);
    me.pause_until("B", "imported");
    acl::aclrtPhysicalMemProp property{};
    property.memAttr = 4;
    property.location = {0, acl::mem_location_type::device};
    const auto one_more = [&] {
      Handle handle = nullptr;
      return api().aclrtMallocPhysical(&handle, handle_size, &property, 0);
    };
    watcher.refused(one_more(), code::rt_memory_allocation, Reason::capacity, "the device is full");
    me.step("full");
    me.pause_until_ended("A");
    watcher.refused(one_more(), code::rt_memory_allocation, Reason::capacity, "B has it all still");
    me.step("still full");
    me.pause_until_ended("B");
    watcher.release(watcher.make(2 * handle_size));
  });
  story.run();
}

TEST_CASE("aclFinalize ends tokens and imports; who has the memory keeps it, and the next session serves again") {
  Story story;
  story.actor("A", [](Actor& me) {
    {
      const HandleProcess a(me);
      const Handle handle = a.make();
      a.put(handle, 'a');
      me.send("B", a.share(handle));
      me.pause_until("B", "imported");
      a.finalize();
      a.has_nothing_left();
      me.step("finalised");
      me.pause_until("B", "finalised");
    }
    const HandleProcess a(me);
    me.expect_equal(host::bytes_in_use(0), std::uint64_t{0}, "B's session ended with what it had");
    me.send("B", a.share(a.make()));
    me.pause_until("B", "done");
  });
  story.actor("B", [](Actor& me) {
    const Token token = [&] {
      const HandleProcess b(me);
      const Token first = me.receive<Token>("A");
      const Handle handle = b.import(first);
      me.step("imported");
      me.pause_until("A", "finalised");
      me.expect_equal(b.get(handle), 'a', "B has the memory");
      me.expect_equal(host::bytes_in_use(0), handle_size, "and it counts");
      b.finalize();
      b.has_nothing_left();
      me.step("finalised");
      return first;
    }();
    const HandleProcess b(me);
    b.import_fails(token, code::rt_invalid_handle, Reason::exporter_gone);
    b.release(b.import(me.receive<Token>("A")));
    me.step("done");
  });
  story.run();
}

TEST_CASE("on 950 a token ends when its handle is freed, and elsewhere when the memory goes (R30)") {
  for (const std::string product : {"a2", "950"}) {
    CAPTURE(product);
    Story story;
    story.actor("A", [product](Actor& me) {
      const HandleProcess a(me, {{"PROFILE", product}});
      const Handle handle = a.make();
      const Token token = a.share(handle);
      void* range = nullptr;
      me.expect_equal(api().aclrtReserveMemAddress(&range, handle_size, 0, nullptr, 0), 0, "a reservation");
      me.expect_equal(api().aclrtMapMem(range, handle_size, 0, handle, 0), 0, "mapped");
      a.release(handle);
      me.expect_equal(host::counters().tokens_exported, std::uint64_t{product == "950" ? 0U : 1U}, "A's tokens");
      me.send("B", token);
      me.pause_until("B", "done");
      me.expect_equal(api().aclrtUnmapMem(range), 0, "unmapped");
      me.expect_equal(host::counters().tokens_exported, std::uint64_t{0}, "no token without memory");
      me.expect_equal(api().aclrtReleaseMemAddress(range), 0, "released");
      a.has_nothing_left();
    });
    story.actor("B", [product](Actor& me) {
      const HandleProcess b(me, {{"PROFILE", product}});
      const Token token = me.receive<Token>("A");
      if (product == "950") {
        b.import_fails(token, code::rt_invalid_handle, Reason::unknown_key);
      } else {
        b.release(b.import(token));
      }
      me.step("done");
    });
    story.run();
  }
}

TEST_CASE("B003 a stopped exporter costs its importer the deadline, and serves it later") {
  Story story;
  story.stop("A", at("exported"));
  story.resume("A", at("B", "timed out"));
  story.actor("A", [](Actor& me) {
    const HandleProcess a(me);
    me.send("B", a.share(a.make()));
    me.step("exported");
    me.pause_until("B", "done");
  });
  story.actor("B", [](Actor& me) {
    const HandleProcess b(me, {{"DEADLINE_MS", "300"}});
    const Token token = me.receive<Token>("A");
    me.pause_until("A", "exported");
    b.import_fails(token, code::rt_drv_internal, Reason::timed_out);
    b.admit_fails(token, code::rt_drv_internal, Reason::timed_out);
    b.has_text("300 ms");
    me.step("timed out");
    b.release(b.import(token));
    me.step("done");
  });
  story.run();
}

TEST_CASE("B003 an exporter that waits for the state file serves all the while, and is told who keeps it waiting") {
  Story story;
  const std::string state = story.state_directory();
  story.actor("A", [](Actor& me) {
    const HandleProcess a(me, {{"DEADLINE_MS", "1500"}});
    const Handle handle = a.make();
    me.send("B", a.share(a.make()));
    me.step("shared");
    me.pause_until("L", "locked");
    // What the state file has room for needs no lock.
    for (std::size_t i = 1; i < host::claims_stored_at_once; ++i) a.share(a.make());
    me.step("exporting");
    Token token;
    a.refused(export_to(handle, listed, TokenKind::v1, &token), code::rt_memory_allocation, Reason::timed_out,
              "an export for which the state file must grow");
    me.step("refused");
    me.pause_until_ended("L");
    a.share(handle);
    me.pause_until("B", "done");
  });
  story.actor("B", [](Actor& me) {
    const HandleProcess b(me, {{"DEADLINE_MS", "1000"}});
    const Token token = me.receive<Token>("A");
    me.pause_until("A", "exporting");
    for (int i = 0; i < 20; ++i) {
      b.admit_fails(token, code::rt_drv_internal, Reason::not_the_exporter);  // a word from A's service thread
      std::this_thread::sleep_for(20ms);
    }
    me.step("done");
  });
  story.actor("L", [state](Actor& me) {
    me.pause_until("A", "shared");
    for (const auto& entry : std::filesystem::directory_iterator(state)) {
      const int file = ::open(entry.path().c_str(), O_RDWR | O_CLOEXEC);
      struct flock lock {};
      lock.l_type = F_WRLCK;
      lock.l_whence = SEEK_SET;
      lock.l_len = 1;
      me.expect(::fcntl(file, F_SETLKW, &lock) == 0, "the lock of the file");
    }
    me.step("locked");
    me.pause_until("A", "refused");
  });
  story.run();
}

TEST_CASE("B064 a forked child has none of its parent's handles and tokens, and ends none of them (R4)") {
  Story story;
  story.actor("A", [](Actor& me) {
    const HandleProcess a(me);
    const Handle handle = a.make();
    a.put(handle, 'a');
    const Token token = a.share(handle);
    const Token theirs = me.receive<Token>("B");
    const Handle imported = a.import(theirs);
    const ChildEnd end = in_child([&] {
      Token own;
      Handle copy = nullptr;
      demand(export_to(handle, listed, TokenKind::v1, &own) == code::rt_context_null, "no export in a child");
      demand(import_from(token, &copy) == code::rt_context_null, "no import");
      demand(api().aclrtFreePhysical(imported) == code::rt_context_null, "no free");
    });
    me.expect(end.good(), end.in_words());
    if (!sees_races()) {  // ThreadSanitizer lets the child of a threaded process start no thread
      const ChildEnd anew = in_child([&] {
        demand(api().aclInit(nullptr) == 0 && api().aclrtSetDevice(0) == 0, "the child has a runtime of its own");
        Token own;
        Handle copy = nullptr;
        demand(export_to(handle, listed, TokenKind::v1, &own) == code::rt_invalid_handle,
               "without the parent's handles");
        demand(import_from(token, &copy) == 0, "it imports from its parent like anybody else");
        demand(import_from(theirs, &copy) == 0, "and what its parent has imported");
        demand(host::bytes_in_use(0) == 2 * handle_size, "all of it counts once");
        demand(api().aclFinalize() == 0, "its runtime ends");
      });
      me.expect(anew.good(), anew.in_words());
    }
    me.expect_equal(a.get(handle), 'a', "A's memory is there");
    me.expect_equal(host::bytes_in_use(0), 2 * handle_size, "and counts");
    me.send("B", token);
    me.pause_until("B", "done");
    a.release(handle);
    a.release(imported);
    a.has_nothing_left();
  });
  story.actor("B", [](Actor& me) {
    const HandleProcess b(me);
    me.send("A", b.share(b.make()));
    const Token token = me.receive<Token>("A");
    b.release(b.import(token));
    me.step("done");
  });
  story.run();
}

TEST_CASE("an importer out of descriptors is refused with the limit, and nothing of the attempt is left") {
  Story story;
  story.actor("A", [](Actor& me) {
    const HandleProcess a(me);
    me.send("B", a.share(a.make()));
    me.pause_until("B", "done");
  });
  story.actor("B", [](Actor& me) {
    const HandleProcess b(me);
    const Token token = me.receive<Token>("A");
    std::vector<int> hoarded;
    for (int copy = ::dup(0); copy >= 0; copy = ::dup(0)) hoarded.push_back(copy);
    b.import_fails(token, code::rt_memory_allocation, Reason::descriptor_limit);
    me.expect_equal(host::counters().handles_imported, std::uint64_t{0}, "nothing is imported");
    for (const int copy : hoarded) ::close(copy);
    b.release(b.import(token));
    b.has_nothing_left();
    me.step("done");
  });
  story.run();
}

TEST_CASE("B059 memory that only its importer holds fills the device until it is freed") {
  Story story;
  const Switches small = {{"CAPACITY", "4M"}};
  story.actor("A", [small](Actor& me) {
    const HandleProcess a(me, small);
    const Handle handle = a.make(2 * handle_size);
    me.send("B", a.share(handle));
    me.pause_until("B", "imported");
    a.release(handle);
    me.step("freed");
    me.pause_until("B", "done");
    me.expect_equal(host::bytes_in_use(0), std::uint64_t{0}, "B gave it back");
    a.release(a.make(2 * handle_size));
  });
  story.actor("B", [small](Actor& me) {
    const HandleProcess b(me, small);
    const Token token = me.receive<Token>("A");
    const Handle handle = b.import(token);
    me.step("imported");
    me.pause_until("A", "freed");
    void* memory = nullptr;
    b.refused(api().aclrtMalloc(&memory, 1, acl::malloc_policy::huge_first), code::rt_memory_allocation,
              Reason::capacity, "the import fills the device");
    b.release(handle);
    b.free(b.allocate(4096));
    b.has_nothing_left();
    me.step("done");
  });
  story.run();
}
