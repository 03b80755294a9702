// SPDX-License-Identifier: Apache-2.0
// Who may import a handle, and who may say so (R41): the whitelist of a token, in the terms of its own calls.
#include "handle_process.hpp"
#include "support/catch.hpp"
#include "support/isolation.hpp"

#include <grp.h>
#include <unistd.h>

#include <string>
#include <vector>

using namespace devshare;
using namespace devshare::test;

TEST_CASE("who was not admitted to a token is refused, and told both numbers (R13, R14, R41)") {
  for (const TokenKind kind : all_kinds) {
    CAPTURE(name_of(kind));
    Story story;
    story.actor("A", [kind](Actor& me) {
      const HandleProcess a(me, {{"PROFILE", "a3"}});
      const Token token = a.share(a.make(), listed, kind);
      me.send("B", token);
      me.pause_until("B", "refused by an empty list");
      std::int32_t zeros[] = {0, 0};
      me.expect_equal(admit_to(token, zeros, 2), 0, "pid 0 is skipped");
      a.admit(token, 1);
      me.step("admitted another");
      me.pause_until("B", "refused");
      std::vector<std::int32_t> many(65'535, 0);  // as many as a call takes
      many.back() = me.receive<std::int32_t>("B");
      me.expect_equal(admit_to(token, many.data(), many.size()), 0, "65,535 pids");
      me.step("admitted");
      me.pause_until("B", "done");
    });
    story.actor("B", [](Actor& me) {
      const HandleProcess b(me, {{"PROFILE", "a3"}});
      const Token token = me.receive<Token>("A");
      b.import_fails(token, code::rt_drv_internal, Reason::not_admitted);
      b.has_text("lists 0 pids");
      me.step("refused by an empty list");
      me.pause_until("A", "admitted another");
      b.import_fails(token, code::rt_drv_internal, Reason::not_admitted);
      const std::int32_t named = host::last_cause().pid;
      me.expect_equal(named, b.bare_pid(), "the cause carries the importer's number");
      b.has_text(fmt::format("goes by {} and was not admitted: the token lists 1 pid, 1 among them", b.bare_pid()));
      me.step("refused");
      me.send("A", b.bare_pid());
      me.pause_until("A", "admitted");
      b.release(b.import(token));
      b.has_nothing_left();
      me.step("done");
    });
    story.run();
  }
}

TEST_CASE("only the exporter admits to a token, and to one without validation nobody does (R41)") {
  Story story;
  story.actor("A", [](Actor& me) {
    const HandleProcess a(me, {{"PROFILE", "a3"}});
    for (const TokenKind kind : all_kinds) {
      const Token open = a.share(a.make(), open_to_all, kind);
      a.admit_fails(open, code::rt_no_permission, Reason::validation_disabled);
      me.send("B", open);
      me.send("B", a.share(a.make(), listed, kind));
      const Handle freed = a.make();
      me.send("B", a.share(freed, listed, kind));
      a.release(freed);
      me.step(fmt::format("sent {}", name_of(kind)));
    }
    me.pause_until("B", "done");
  });
  story.actor("B", [](Actor& me) {
    const HandleProcess b(me, {{"PROFILE", "a3"}});
    for (const TokenKind kind : all_kinds) {
      const Token open = me.receive<Token>("A");
      const Token narrow = me.receive<Token>("A");
      const Token ended = me.receive<Token>("A");
      me.pause_until("A", fmt::format("sent {}", name_of(kind)));
      b.admit_fails(open, code::rt_drv_internal, Reason::not_the_exporter);
      b.admit_fails(narrow, code::rt_drv_internal, Reason::not_the_exporter);
      b.has_text("only its exporter admits");
      b.admit_fails(ended, code::rt_invalid_handle, Reason::unknown_key);
      b.import_fails(narrow, code::rt_drv_internal, Reason::not_admitted);
      b.release(b.import(open));
    }
    b.admit_fails(token_of(4711), code::rt_invalid_handle, Reason::exporter_gone);  // nobody's
    me.step("done");
  });
  story.run();
}

TEST_CASE("a pid that was admitted to a token before its process existed admits nobody (R15, R41)") {
  if (const std::string why = why_no_fork_as(); !why.empty()) DEVSHARE_SKIP(why);
  const pid_t number = unused_pid();
  Story story;
  story.actor("A", [number](Actor& me) {
    const HandleProcess a(me);
    const Token token = a.share(a.make(), listed);
    a.admit(token, number);
    me.step("admitted nobody");
    me.send("B", token);
    me.pause_until("B", "refused");
    a.admit(token, number);
    me.step("admitted again");
    me.pause_until("B", "done");
  });
  story.start("B", at("A", "admitted nobody"));
  story.actor("B", Role{Isolation::none, number}, [](Actor& me) {
    const HandleProcess b(me);
    const Token token = me.receive<Token>("A");
    b.import_fails(token, code::rt_drv_internal, Reason::admitted_too_early);
    b.has_text("R15");
    me.step("refused");
    me.pause_until("A", "admitted again");
    b.release(b.import(token));
    me.step("done");
  });
  story.run();
}

TEST_CASE("B015 an importer in a container is admitted by its number for others, and its plain pid admits it not") {
  const auto container = Isolation::pid;
  if (const std::string why = why_no(container); !why.empty()) DEVSHARE_SKIP(why);
  Story story;
  story.actor("A", [](Actor& me) {
    const HandleProcess a(me);
    const Token token = a.share(a.make(), listed, TokenKind::v2);
    me.send("B", token);
    a.admit(token, 1);
    me.step("admitted 1");
    a.admit(token, me.receive<std::int32_t>("B"));
    me.step("admitted");
    me.pause_until("B", "done");
  });
  story.actor("B", Role{container, 0}, [](Actor& me) {
    const HandleProcess b(me);
    const Token token = me.receive<Token>("A");
    me.pause_until("A", "admitted 1");
    b.import_fails(token, code::rt_drv_internal, Reason::not_admitted);
    me.send("A", b.bare_pid());
    me.pause_until("A", "admitted");
    b.release(b.import(token));
    me.step("done");
  });
  story.run();
}

TEST_CASE("a socket directory carries tokens across network namespaces, abstract names do not") {
  const auto apart = Isolation::net;
  if (const std::string why = why_no(apart); !why.empty()) DEVSHARE_SKIP(why);
  for (const bool with_path : {false, true}) {
    Story story;
    const std::string directory = with_path ? story.file("sockets") : "";
    story.actor("A", [directory](Actor& me) {
      if (!directory.empty()) host::set("SOCKET_DIR", directory);
      const HandleProcess a(me);
      me.send("B", a.share(a.make()));
      me.pause_until("B", "done");
    });
    story.actor("B", Role{apart, 0}, [directory](Actor& me) {
      if (!directory.empty()) host::set("SOCKET_DIR", directory);
      const HandleProcess b(me);
      const Token token = me.receive<Token>("A");
      if (directory.empty()) {
        b.import_fails(token, code::rt_invalid_handle, Reason::exporter_gone);
      } else {
        b.release(b.import(token));
      }
      me.step("done");
    });
    story.run();
  }
}

TEST_CASE("another user's token is refused, whatever was admitted") {
  if (::geteuid() != 0) DEVSHARE_SKIP("only root can play two users");
  constexpr uid_t nobody = 65534;
  Story story;
  story.actor("A", [](Actor& me) {
    const HandleProcess a(me);
    const Token token = a.share(a.make(), listed);
    a.admit(token, me.receive<std::int32_t>("B"));
    me.send("B", token);
    me.send("B", a.share(a.make(), open_to_all, TokenKind::v2));
    me.pause_until("B", "done");
  });
  story.actor("B", [](Actor& me) {
    me.expect(::setgroups(0, nullptr) == 0 && ::setgid(nobody) == 0 && ::setuid(nobody) == 0, "it is another user now");
    const HandleProcess b(me);
    me.send("A", b.bare_pid());
    for (int i = 0; i < 2; ++i) {
      const Token token = me.receive<Token>("A");
      b.import_fails(token, code::rt_drv_internal, Reason::user_refused);
      b.admit_fails(token, code::rt_drv_internal, Reason::user_refused);
    }
    b.has_nothing_left();
    me.step("done");
  });
  story.run();
}
