// SPDX-License-Identifier: Apache-2.0
// Lending across containers and sandboxes.
#include "lend_one.hpp"
#include "raw_peer.hpp"

#include "support/containers.hpp"

#include <filesystem>
#include <string>

#include <sched.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <unistd.h>

using namespace devshare;
using namespace devshare::test;
namespace fs = std::filesystem;

namespace {

constexpr std::size_t size = lent_size;

// A borrower in a container, of a lender outside, or in another.
void is_known_in_a_container(Isolation container, bool sibling) {
  Story story;
  const Endpoint endpoint = Endpoint::path(story.file("lender"));
  const auto set_runtime = [&] {
    if (has(container, Isolation::net)) host::set("SOCKET_DIR", story.file("sockets"));
  };
  story.actor("A", Role{sibling ? container : Isolation::none, 0}, [&](Actor& me) {
    set_runtime();
    const Party a(me);
    Told told;
    {
      Lender lender = me.must(Lender::at(a.runtime, endpoint, told.options()), "A has an endpoint");
      Lent lent = me.must(lender.offer("m", a.allocate(pattern(size))), "A offers");
      Serving serving = me.must(serve(lender), "a thread serves");
      me.pause_until("B", "holds");
      me.expect(soon([&] { return told.count(Kind::imported) == 1; }), "B has it open");
      const auto holders = me.must(lent.holders(), "A looks");
      me.expect_equal(holders.size(), 1U, "one holds it");
      me.expect((holders[0].pid == 0) == sibling, "a pid is only what can be seen from here");
      me.step("looked");
      me.pause_until_ended("B");
      me.expect(soon([&] { return told.count(Kind::died) == 1; }), "its death is heard");
      me.must(me.must(std::move(lent).close(Deadline::now()), "nobody holds it any more").close(), "and it is free");
    }
    a.leave();
  });
  story.actor("B", Role{container, 0}, [&](Actor& me) {
    set_runtime();
    const Party b(me);
    const Lease lease = me.must(borrow(b.device, endpoint, "m", 30s), "B borrows");
    me.expect(b.read(lease.bytes()) == pattern(size), "and reads");
    me.step("holds");
    me.pause_until("A", "looked");
    me.step("dies");
  });
  story.kill("B", at("dies"));
  story.run();
}

}  // namespace

TEST_CASE("lenders that are both pid 1 in their containers are two, for a borrower outside and one in a third (B013)",
          "[any library]") {
  const auto container = Isolation::pid;
  if (const std::string why = why_no_container(container); !why.empty()) DEVSHARE_SKIP(why);
  for (const bool borrower_too : {false, true}) {
    CAPTURE(borrower_too);
    Story story;
    const auto endpoint = [&](std::string_view name) { return Endpoint::path(story.file(name)); };
    for (const std::string name : {"X", "Y"}) {
      story.actor(name, Role{container, 0}, [&, name](Actor& me) {
        me.expect_equal(::getpid(), 1, "it is number 1");
        lend(me, endpoint(name), "I", name == "X" ? 1 : 2);
      });
    }
    story.actor("I", Role{borrower_too ? container : Isolation::none, 0}, [&](Actor& me) {
      // From outside a plain pid means nothing in X's container.
      const Party i(me, 0, {{"BARE_PID", "inode"}});
      Lease x = me.must(borrow(i.device, endpoint("X"), "m", 30s), "it borrows of X");
      Lease y = me.must(borrow(i.device, endpoint("Y"), "m", 30s), "and of Y");
      me.expect(i.read(x.bytes()) == pattern(size, 1), "X's bytes");
      me.expect(i.read(y.bytes()) == pattern(size, 2), "Y's bytes");
      me.must(std::move(x).close(), "X's is returned");
      me.must(y.check(), "Y's is there still");
      me.must(std::move(y).close(), "and returned");
      i.leave();
      me.step("done");
    });
    story.run();
  }
}

TEST_CASE("a borrower in another container is known by its process, whose death is heard", "[any library]") {
  const auto container = Isolation::pid;
  if (const std::string why = why_no_container(container); !why.empty()) DEVSHARE_SKIP(why);
  for (const bool sibling : {false, true}) {
    CAPTURE(sibling);
    is_known_in_a_container(container, sibling);
  }
}

TEST_CASE("also where the container has users, and a network, of its own") {
  for (const auto container : {Isolation::pid | Isolation::user, Isolation::pid | Isolation::user | Isolation::net}) {
    if (const std::string why = why_no_container(container); !why.empty()) DEVSHARE_SKIP(why);
    for (const bool sibling : {false, true}) {
      CAPTURE(container, sibling);
      is_known_in_a_container(container, sibling);
    }
  }
}

TEST_CASE("a process that cannot be seen from here, and hangs up, keeps its lease until it ends") {
  const auto container = Isolation::pid;
  if (const std::string why = why_no_container(container); !why.empty()) DEVSHARE_SKIP(why);
  Story story;
  const Endpoint endpoint = Endpoint::path(story.file("lender"));
  story.actor("A", Role{container, 0}, [&](Actor& me) {
    const Party a(me);
    {
      Told told;
      Lender lender = me.must(Lender::at(a.runtime, endpoint, told.options()), "A has an endpoint");
      Lent lent = me.must(lender.offer("m", a.allocate(pattern(size))), "A offers");
      Serving serving = me.must(serve(lender), "a thread serves");
      me.step("serves");
      me.pause_until("B", "hung up");
      const auto holders = me.must(lent.holders(), "A looks");
      me.expect(holders.size() == 1 && holders[0].pid == 0, "somebody holds it who has no number here");
      me.step("looked");
      me.pause_until_ended("B");
      me.expect(soon([&] { return told.count(Kind::died) == 1; }), "its death is heard");
      me.must(me.must(std::move(lent).close(Deadline::now()), "nobody holds it any more").close(), "and it is free");
    }
    a.leave();
  });
  story.actor("B", Role{container, 0}, [&](Actor& me) {
    me.pause_until("A", "serves");
    const auto introduced = [&] {
      RawPeer peer = RawPeer::connect(endpoint);
      me.expect(peer.introduce(message_of(MessageType::hello)) && peer.receive_type() == MessageType::welcome, "hello");
      return peer;
    };
    RawPeer peer = introduced();
    me.expect(peer.send(request_for("m", 1)) && peer.receive_type() == MessageType::lent, "B holds a lease");
    peer.hang_up();
    for (int i = 0; i < 3; ++i) introduced();  // by then A has heard it
    me.step("hung up");
    me.pause_until("A", "looked");
  });
  story.run();
}

TEST_CASE("abstract names end at a network namespace, paths do not, the runtime's either") {
  const auto apart = Isolation::net;
  if (const std::string why = why_no(apart); !why.empty()) DEVSHARE_SKIP(why);
  for (const bool runtime_by_path : {true, false}) {
    CAPTURE(runtime_by_path);
    Story story;
    const Endpoint by_path = Endpoint::path(story.file("lender"));
    const Endpoint by_name = abstract(story, "lender");
    const auto set_runtime = [&] {
      if (runtime_by_path) host::set("SOCKET_DIR", story.file("sockets"));
    };
    story.actor("A", [&](Actor& me) {
      set_runtime();
      lend(me, by_path, "B");
    });
    story.actor("C", [&](Actor& me) { lend(me, by_name, "B"); });
    story.actor("B", Role{apart, 0}, [&](Actor& me) {
      set_runtime();
      const Party b(me);
      me.pause_until("A", "serves");
      me.pause_until("C", "serves");
      if (runtime_by_path) {
        borrows(b, by_path);
      } else {
        b.refused(borrow(b.device, by_path, "m", 30s),
                  {Errc::exporter_gone, code::rt_drv_internal, Reason::exporter_gone}, "the runtime does not find A");
      }
      refused_as(me, borrow(b.device, by_name, "m", 100ms), Errc::no_lender, "the name is of another network");
      b.leave();
      me.step("done");
    });
    story.run();
  }
}

TEST_CASE("a host's name, and where a directory is mounted, make no difference (B021)", "[any library]") {
  if (const std::string why = why_no_own_mounts(); !why.empty()) DEVSHARE_SKIP(why);
  Story story;
  TempDirectory elsewhere;
  story.actor("A", [&](Actor& me) { lend(me, Endpoint::path(story.file("lender")), "B"); });
  story.actor("B", [&](Actor& me) {
    me.pause_until("A", "serves");
    me.expect(::unshare(CLONE_NEWUTS | CLONE_NEWNS) == 0 && ::sethostname("another", 7) == 0,
              "B's host has another name");
    me.expect(::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
                  ::mount(fs::path(story.file("lender")).parent_path().c_str(), elsewhere.path().c_str(), nullptr,
                          MS_BIND, nullptr) == 0,
              "and B sees the directory in another place");
    const Party b(me);
    borrows(b, Endpoint::path(elsewhere.file("lender")));
    b.leave();
    me.step("done");
  });
  story.run();
}

TEST_CASE(
    "in a sandbox without memfd_create lending works where both allow the fallback, and else says why not (B099)") {
  if (const std::string why = why_no_refused_system_calls(); !why.empty()) DEVSHARE_SKIP(why);
  for (const bool both : {true, false}) {
    CAPTURE(both);
    Story story;
    const Endpoint endpoint = Endpoint::path(story.file("lender"));
    story.actor("A", [&](Actor& me) {
      me.expect_equal(refuse_memfd_create(EPERM), 0, "a filter");
      lend(me, endpoint, "B", 0, nullptr, Allow::same_user(), {{"FALLBACK", "allow"}});
    });
    story.actor("B", [&](Actor& me) {
      me.pause_until("A", "serves");
      if (both) {
        me.expect_equal(refuse_memfd_create(EPERM), 0, "a filter");
        const Party b(me, 0, {{"FALLBACK", "allow"}});
        borrows(b, endpoint);
        b.leave();
      } else {
        const Party b(me);
        const auto refused = borrow(b.device, endpoint, "m", 30s);
        me.expect(
            !refused && refused.error().reason() != Reason::none,
            fmt::format("the error names the rule: {}", refused ? std::string() : fmt::format("{}", refused.error())));
        b.leave();
      }
      me.step("done");
    });
    story.run();
  }
}
