// SPDX-License-Identifier: Apache-2.0
// Who is who when processes share by key: numbers, start times, containers, and the names of endpoints.
#include "key_process.hpp"
#include "support/catch.hpp"
#include "support/containers.hpp"
#include "support/isolation.hpp"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <string>

using namespace devshare;
using namespace devshare::test;
using namespace std::chrono_literals;

TEST_CASE("who was not admitted is refused, and told both numbers (R13, R14)") {
  Story story;
  story.actor("A", [](Actor& me) {
    const Process a(me);
    const Key key = a.export_key(a.allocate(), listed);
    me.send("B", key);
    me.pause_until("B", "refused by an empty list");
    a.admit(key, 1);
    me.step("admitted another");
    me.pause_until("B", "refused");
    a.admit(key, me.receive<std::int32_t>("B"));
    me.step("admitted");
    me.pause_until("B", "done");
  });
  story.actor("B", [](Actor& me) {
    const Process b(me);
    const Key key = me.receive<Key>("A");
    b.import_fails(key, code::rt_drv_internal, Reason::not_admitted);
    b.has_text("lists 0 pids");
    me.step("refused by an empty list");
    me.pause_until("A", "admitted another");
    b.import_fails(key, code::rt_drv_internal, Reason::not_admitted);
    const std::int32_t named = host::last_cause().pid;
    b.has_text(fmt::format("goes by {} and was not admitted: the key lists 1 pid, 1 among them", b.bare_pid()));
    me.expect_equal(named, b.bare_pid(), "the cause carries the importer's number");
    me.step("refused");
    me.send("A", b.bare_pid());
    me.pause_until("A", "admitted");
    b.import_key(key);
    b.close(key);
    me.step("done");
  });
  story.run();
}

TEST_CASE("a pid that was admitted before its process existed admits nobody, and admitting it again does (R15)") {
  if (const std::string why = why_no_fork_as(); !why.empty()) DEVSHARE_SKIP(why);
  const pid_t number = unused_pid();
  Story story;
  story.actor("A", [number](Actor& me) {
    const Process a(me);
    const Key key = a.export_key(a.allocate(), listed);
    a.admit(key, number);  // nobody has it: allowed, and in vain
    me.step("admitted nobody");
    me.send("B", key);
    me.pause_until("B", "refused");
    a.admit(key, number);
    me.step("admitted again");
    me.pause_until("B", "done");
  });
  story.start("B", at("A", "admitted nobody"));
  story.actor("B", Role{Isolation::none, number}, [number](Actor& me) {
    const Process b(me);
    me.expect_equal(::getpid(), number, "B has the number that was admitted");
    const Key key = me.receive<Key>("A");
    b.import_fails(key, code::rt_drv_internal, Reason::admitted_too_early);
    b.has_text("R15");
    me.step("refused");
    me.pause_until("A", "admitted again");
    b.import_key(key);
    b.close(key);
    me.step("done");
  });
  story.run();
}

TEST_CASE("B015 the number of a container's importer is not its pid, and admits it all the same") {
  const auto container = Isolation::pid;
  if (const std::string why = why_no_container(container); !why.empty()) DEVSHARE_SKIP(why);
  Story story;
  story.actor("A", [](Actor& me) {
    const Process a(me);
    const Key key = a.export_key(a.allocate(), listed);
    me.send("B", key);
    a.admit(key, 1);  // B's own idea of its pid
    me.step("admitted 1");
    a.admit(key, me.receive<std::int32_t>("B"));
    me.step("admitted");
    me.pause_until("B", "done");
  });
  story.actor("B", Role{container, 0}, [](Actor& me) {
    const Process b(me);
    me.expect_equal(::getpid(), 1, "B is number 1 in its container");
    me.expect(b.bare_pid() > 1 << 22, "its number for others is beyond every pid");
    const Key key = me.receive<Key>("A");
    me.pause_until("A", "admitted 1");
    b.import_fails(key, code::rt_drv_internal, Reason::not_admitted);
    me.send("A", b.bare_pid());
    me.pause_until("A", "admitted");
    b.import_key(key);
    b.close(key);
    me.step("done");
  });
  story.run();
}

TEST_CASE("B013 B017 exporters that are both pid 1 in their containers are two, and so are one's lives") {
  const auto container = Isolation::pid;
  if (const std::string why = why_no_container(container); !why.empty()) DEVSHARE_SKIP(why);
  Story story;
  story.kill("first life", at("exported"));
  story.start("second life", at("I", "lost the first"));
  for (const char* exporter : {"X", "first life", "second life"}) {
    story.actor(exporter, Role{container, 0}, [exporter](Actor& me) {
      const Process x(me);
      me.expect_equal(::getpid(), 1, "it is number 1");
      void* memory = x.allocate();
      x.fill(memory, static_cast<unsigned char>(*exporter));
      me.send("I", x.export_key(memory, open_to_all));
      if (me.name() == "first life") me.pause_until("I", "imported");
      me.step("exported");
      me.pause_until("I", "done");
    });
  }
  story.actor("I", [](Actor& me) {
    const Process i(me);
    void* from_x = i.import_key(me.receive<Key>("X"));
    void* from_first = i.import_key(me.receive<Key>("first life"));
    me.expect_equal(host::counters().connections, std::uint64_t{2}, "two exporters");
    me.expect_equal(i.peek(from_x), 'X', "X's bytes");
    me.expect_equal(i.peek(from_first), 'f', "the first life's bytes");
    me.step("imported");
    me.pause_until_ended("first life");
    i.is_lost(from_first);
    me.step("lost the first");
    me.expect_equal(i.peek(i.import_key(me.receive<Key>("second life"))), 's', "the second life's bytes");
    me.expect_equal(i.peek(from_x), 'X', "X's bytes still");
    me.step("done");
  });
  story.run();
}

TEST_CASE("a plain pid cannot be checked from inside a container; the importer is told the switch that helps") {
  const auto container = Isolation::pid;
  if (const std::string why = why_no_container(container); !why.empty()) DEVSHARE_SKIP(why);
  for (const bool by_inode : {false, true}) {
    Story story;
    story.actor("A", Role{container, 0}, [](Actor& me) {
      const Process a(me);
      const Key key = a.export_key(a.allocate(), listed);
      a.admit(key, me.receive<std::int32_t>("B"));
      me.send("B", key);
      me.pause_until("B", "done");
    });
    story.actor("B", [by_inode](Actor& me) {
      if (by_inode) host::set("BARE_PID", "inode");
      const Process b(me);
      me.send("A", b.bare_pid());
      const Key key = me.receive<Key>("A");
      if (by_inode) {
        b.import_key(key);
      } else {
        b.import_fails(key, code::rt_drv_internal, Reason::foreign_pid_namespace);
        b.has_text("DEVSHARE_HOST_BARE_PID=inode");
      }
      me.step("done");
    });
    story.run();
  }
}

TEST_CASE("abstract names end at a network namespace, socket paths do not") {
  const auto apart = Isolation::net;
  if (const std::string why = why_no(apart); !why.empty()) DEVSHARE_SKIP(why);
  for (const bool with_path : {false, true}) {
    Story story;
    const std::string directory = with_path ? story.file("sockets") : "";
    story.actor("A", [directory](Actor& me) {
      if (!directory.empty()) host::set("SOCKET_DIR", directory);
      const Process a(me);
      me.send("B", a.export_key(a.allocate(), open_to_all));
      me.pause_until("B", "done");
      a.finalize();
      if (!directory.empty()) {
        me.expect(std::filesystem::is_empty(directory), "nothing is left in the directory");
        me.expect(std::filesystem::status(directory).permissions() == std::filesystem::perms::owner_all, "it is 0700");
      }
    });
    story.actor("B", Role{apart, 0}, [directory](Actor& me) {
      if (!directory.empty()) host::set("SOCKET_DIR", directory);
      const Process b(me);
      const Key key = me.receive<Key>("A");
      if (directory.empty()) {
        b.import_fails(key, code::rt_drv_internal, Reason::exporter_gone);
      } else {
        b.import_key(key);
        b.close(key);
      }
      me.step("done");
    });
    story.run();
  }
}

TEST_CASE("B062 B072 sockets of killed exporters are reclaimed by the next one, those of live ones are not") {
  Story story;
  const std::string directory = story.file("sockets");
  const auto count = [directory] {
    return std::distance(std::filesystem::directory_iterator(directory), std::filesystem::directory_iterator());
  };
  story.kill("killed", at("exported"));
  story.start("next", at("live", "killed is gone"));
  story.actor("live", [directory, count](Actor& me) {
    const Process live(me, {{"SOCKET_DIR", directory}});
    const Key key = live.export_key(live.allocate(), open_to_all);
    me.step("exported");
    me.pause_until_ended("killed");
    me.expect_equal(count(), 2, "what was killed left its name");
    me.step("killed is gone");
    me.send("next", key);
    me.pause_until("next", "imported");
    me.expect_equal(count(), 2, "the next one took it away");
    me.step("counted");
  });
  story.actor("killed", [directory](Actor& me) {
    me.pause_until("live", "exported");
    const Process killed(me, {{"SOCKET_DIR", directory}});
    killed.export_key(killed.allocate(), open_to_all);
    me.step("exported");
  });
  story.actor("next", [directory](Actor& me) {
    const Process next(me, {{"SOCKET_DIR", directory}});
    next.export_key(next.allocate(), open_to_all);
    const Key key = me.receive<Key>("live");
    next.import_key(key);
    me.step("imported");
    me.pause_until("live", "counted");
    std::exit(0);  // without aclFinalize: its name goes all the same
  });
  story.ends("next", with_code(0));
  story.run();
  CHECK(count() == 1);  // that of "live", which left by _exit
}

TEST_CASE("B072 a socket directory that others may enter, or that somebody else owns, is never used") {
  Story story;
  const std::string directory = story.file("sockets");
  std::filesystem::create_directory(directory);
  std::filesystem::permissions(directory, std::filesystem::perms::all);
  story.actor("A", [directory](Actor& me) {
    const Process a(me, {{"SOCKET_DIR", directory}});
    Key key{};
    me.expect_equal(api().aclrtIpcMemGetExportKey(a.allocate(), size, key.bytes, sizeof key.bytes, open_to_all),
                    code::rt_drv_internal, "the export");
    me.expect_equal(host::last_cause().reason, Reason::backend_unavailable, "why not");
    a.has_text("0700");
  });
  story.run();
}
