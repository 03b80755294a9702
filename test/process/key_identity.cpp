// SPDX-License-Identifier: Apache-2.0
// Who an importer is, through the typed layer: containers, numbers that are used again, other processes, other users.
// Cases that this machine cannot show are skipped with the reason.
#include "host/peer_identity.hpp"
#include "support/child.hpp"
#include "support/containers.hpp"
#include "support/sharing.hpp"
#include "support/soon.hpp"

#include <grp.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <string>
#include <utility>

using namespace devshare;
using namespace devshare::test;

namespace {

constexpr std::size_t KiB = 1024;

constexpr Refusal not_admitted{Errc::not_authorised, code::rt_drv_internal, Reason::not_admitted};
constexpr Refusal admitted_too_early{Errc::not_authorised, code::rt_drv_internal, Reason::admitted_too_early};

// A container: with a user namespace of its own, as without root, or without.
std::string in_words(Isolation isolation) {
  return has(isolation, Isolation::user) ? "a container with its own users" : "a container";
}

void export_and_share(const Party& a, std::string_view importer) {
  auto key = a.me.must(export_key(a.allocate(pattern(4 * KiB))), "it exports");
  a.share_with(importer, key);
  a.me.pause_until(importer, "closed");
  a.me.expect(a.read(key.bytes()) == pattern(4 * KiB, 1), "it sees what the importer wrote");
  a.me.must(a.me.must(std::move(key).close(), "it closes").close(), "and frees");
  a.leave();
}

void import_and_use(const Party& b, std::string_view exporter) {
  b.introduce_myself_to(exporter);
  ImportedMapping mapping = b.import(b.ticket_from(exporter));
  b.me.expect(b.read(mapping.bytes()) == pattern(4 * KiB), "it sees what the exporter wrote");
  b.write(mapping.bytes(), pattern(4 * KiB, 1));
  b.me.must(std::move(mapping).close(), "it closes");
  b.leave();
  b.me.step("closed");
}

}  // namespace

TEST_CASE("R14 an importer in a container, and an exporter outside", "[any library]") {
  for (const Isolation container : {Isolation::pid, Isolation::pid | Isolation::user}) {
    if (const std::string why = why_no_container(container); !why.empty()) DEVSHARE_SKIP(why);
    INFO("in " << in_words(container));
    Story story;
    story.actor("A", [](Actor& me) { export_and_share(Party(me), "B"); });
    story.actor("B", Role{container, 0}, [](Actor& me) {
      const Party b(me);
      me.expect_equal(::getpid(), 1, "B is number 1 in its container");
      me.expect(b.own_pid().to_message() != 1, "which is not its number for others");
      import_and_use(b, "A");
    });
    story.run();
  }
}

TEST_CASE("R14 an importer and an exporter in two containers, side by side, both number 1", "[any library]") {
  for (const Isolation container : {Isolation::pid, Isolation::pid | Isolation::user}) {
    if (const std::string why = why_no_container(container); !why.empty()) DEVSHARE_SKIP(why);
    INFO("in " << in_words(container));
    Story story;
    story.actor("A", Role{container, 0}, [](Actor& me) {
      me.expect_equal(::getpid(), 1, "A is number 1 in its container");
      export_and_share(Party(me), "B");
    });
    story.actor("B", Role{container, 0}, [](Actor& me) {
      me.expect_equal(::getpid(), 1, "and B in its own: a ticket of A's is no own ticket all the same");
      import_and_use(Party(me), "A");
    });
    story.run();
  }
}

TEST_CASE("R14 an importer and an exporter in one container", "[any library]") {
  if (const std::string why = why_no_container(Isolation::pid); !why.empty()) DEVSHARE_SKIP(why);
  Story story;
  story.actor("A", Role{Isolation::pid, 0}, [](Actor& me) {
    int numbers[2];
    int tickets[2];
    me.expect(::pipe(numbers) == 0 && ::pipe(tickets) == 0, "two pipes");
    const pid_t child = ::fork();
    if (child == 0) {
      const Party b(me);
      const std::int32_t number = b.own_pid().to_message();
      demand(::write(numbers[1], &number, sizeof number) == sizeof number, "the child sends its number");
      Bytes message(ticket_size);
      demand(::read(tickets[0], message.data(), message.size()) == ssize_t{ticket_size}, "and gets a ticket");
      ImportedMapping mapping = b.import(me.must(ReceivedTicket::decode(message), "well-formed"));
      b.write(mapping.bytes(), pattern(4 * KiB, 1));
      me.must(std::move(mapping).close(), "the child closes");
      b.leave();
      ::_exit(0);
    }
    const Party a(me);
    auto key = me.must(export_key(a.allocate(pattern(4 * KiB))), "A exports");
    std::int32_t number = 0;
    me.expect(::read(numbers[0], &number, sizeof number) == sizeof number, "the number arrives");
    const auto ticket = me.must(key.admit(BarePid::from_peer_message(number)), "the child is admitted");
    me.expect(::write(tickets[1], ticket.bytes().data(), ticket_size) == ssize_t{ticket_size}, "the ticket is sent");
    int status = -1;
    me.expect(::waitpid(child, &status, 0) == child && status == 0, "the child comes to its end");
    me.expect(a.read(key.bytes()) == pattern(4 * KiB, 1), "A sees what its neighbour wrote");
  });
  story.run();
}

TEST_CASE("R14 an exporter in a container cannot check a plain pid from outside, and says what helps") {
  if (const std::string why = why_no_container(Isolation::pid); !why.empty()) DEVSHARE_SKIP(why);
  if (!host::in_initial_pid_namespace()) DEVSHARE_SKIP("this test itself runs in a container");
  Story story;
  story.actor("A", Role{Isolation::pid, 0}, [](Actor& me) {
    const Party a(me);
    auto key = me.must(export_key(a.allocate(4 * KiB)), "A exports");
    a.share_with("B", key);
    me.pause_until("B", "done");
  });
  story.actor("B", [](Actor& me) {
    const Party b(me);
    b.introduce_myself_to("A");
    const auto refused = ImportedMapping::open(b.ticket_from("A"), b.device);
    b.refused(refused, {Errc::not_authorised, code::rt_drv_internal, Reason::foreign_pid_namespace}, "B is refused");
    const char* text = api().aclGetRecentErrMsg();
    me.expect(std::string(text != nullptr ? text : "").find("DEVSHARE_HOST_BARE_PID=inode") != std::string::npos,
              "and told the switch");
    me.step("done");
  });
  story.run();
}

TEST_CASE("R14 with BARE_PID=inode an exporter in a container admits importers from outside", "[any library]") {
  if (const std::string why = why_no_container(Isolation::pid); !why.empty()) DEVSHARE_SKIP(why);
  const Switches switches{{"BARE_PID", "inode"}};
  Story story;
  story.actor("A", Role{Isolation::pid, 0}, [&](Actor& me) { export_and_share(Party(me, 0, switches), "B"); });
  story.actor("B", [&](Actor& me) { import_and_use(Party(me, 0, switches), "A"); });
  story.run();
}

TEST_CASE("B013 two exporters that are both number 1 in their containers are two to their importer", "[any library]") {
  if (const std::string why = why_no_container(Isolation::pid); !why.empty()) DEVSHARE_SKIP(why);
  Story story;
  for (const std::size_t seed : {1U, 2U}) {
    story.actor(fmt::format("X{}", seed), Role{Isolation::pid, 0}, [seed](Actor& me) {
      const Party x(me);
      auto key = me.must(export_key(x.allocate(pattern(4 * KiB, seed))), "it exports");
      x.share_with("B", key);
      me.pause_until("B", "done");
    });
  }
  story.actor("B", Role{Isolation::pid, 0}, [](Actor& me) {
    const Party b(me);
    b.introduce_myself_to("X1");
    b.introduce_myself_to("X2");
    const ReceivedTicket first = b.ticket_from("X1");
    const ReceivedTicket second = b.ticket_from("X2");
    me.expect(first.exporter().pid == 1 && second.exporter().pid == 1, "both exporters are number 1");
    me.expect(!(first.exporter() == second.exporter()), "and two");
    const ImportedMapping one = b.import(first);
    const ImportedMapping two = b.import(second);
    me.expect(b.read(one.bytes()) == pattern(4 * KiB, 1) && b.read(two.bytes()) == pattern(4 * KiB, 2),
              "each its bytes");
    me.step("done");
  });
  story.run();
}

TEST_CASE("R15 a pid admitted before its process started admits nobody, until it is admitted again") {
  if (const std::string why = why_no_fork_as(); !why.empty()) DEVSHARE_SKIP(why);
  const pid_t number = unused_pid();
  for (const std::string_view product : {"a2", "310p", "950"}) {
    INFO("on " << product);
    Story story;
    story.actor("A", [&](Actor& me) {
      const Party a(me, 0, {{"PROFILE", product}});
      auto key = me.must(export_key(a.allocate(pattern(4 * KiB))), "A exports");
      const auto pid = BarePid::from_peer_message(number);
      const auto ticket = me.must(key.admit(pid), "nobody has the number, and it is admitted");
      me.step("admitted");
      a.send("B", ticket);
      me.pause_until("B", "refused");
      me.must(key.admit(pid), "now that B has it, once more");
      me.step("admitted again");
      me.pause_until("B", "done");
    });
    story.start("B", at("A", "admitted"));
    story.actor("B", Role{Isolation::none, number}, [&](Actor& me) {
      const Party b(me, 0, {{"PROFILE", product}});
      me.expect_equal(b.own_pid().to_message(), number, "B has the number that was admitted");
      const ReceivedTicket ticket = b.ticket_from("A");
      const auto refused = ImportedMapping::open(ticket, b.device);
      b.refused(refused, admitted_too_early, "it was admitted before B was there");
      const std::string text = to_string(refused.error(), true);
      me.expect(text.find("R15") != std::string::npos, "the rule is named: " + text);
      me.step("refused");
      me.pause_until("A", "admitted again");
      const ImportedMapping mapping = b.import(ticket);
      me.expect(b.read(mapping.bytes()) == pattern(4 * KiB), "B reads");
      me.step("done");
    });
    story.run();
  }
}

TEST_CASE("R15 B017 a number that is used again does not inherit the admission of who had it before") {
  if (const std::string why = why_no_fork_as(); !why.empty()) DEVSHARE_SKIP(why);
  const pid_t number = unused_pid();
  Story story;
  story.actor("A", [&](Actor& me) {
    const Party a(me);
    auto key = me.must(export_key(a.allocate(pattern(4 * KiB))), "A exports");
    a.share_with("first", key);
    me.pause_until_ended("first");
    ::usleep(30'000);  // start times are told in hundredths of a second: both would have the same
    me.step("the number is free");
    a.send("second", me.must(key.admit(BarePid::from_peer_message(1)), "another ticket of the same key"));
    me.pause_until("second", "refused");
    a.send("second", me.must(key.admit(a.pid_of("second")), "the new owner is admitted itself"));
    me.pause_until("second", "done");
  });
  story.actor("first", Role{Isolation::none, number}, [&](Actor& me) {
    const Party b(me);
    b.introduce_myself_to("A");
    const ImportedMapping mapping = b.import(b.ticket_from("A"));
    me.expect(b.read(mapping.bytes()) == pattern(4 * KiB), "who was admitted reads");
  });
  story.start("second", at("A", "the number is free"));
  story.actor("second", Role{Isolation::none, number}, [&](Actor& me) {
    const Party b(me);
    me.expect_equal(b.own_pid().to_message(), number, "another process has its number now");
    b.refused(ImportedMapping::open(b.ticket_from("A"), b.device), admitted_too_early, "and is refused");
    me.step("refused");
    b.introduce_myself_to("A");
    const ImportedMapping mapping = b.import(b.ticket_from("A"));
    me.expect(b.read(mapping.bytes()) == pattern(4 * KiB), "until it is admitted itself");
    me.step("done");
  });
  story.run();
}

TEST_CASE("R14 a process that was admitted and becomes another program is admitted still, and its children are not") {
  Story story;
  const std::string message = story.file("ticket");
  story.actor("A", [](Actor& me) {
    const Party a(me);
    auto key = me.must(export_key(a.allocate(pattern(4 * KiB))), "A exports");
    a.share_with("B", key);
    me.pause_until_ended("B");
    me.expect(a.read(key.bytes()) == pattern(4 * KiB, 1), "A sees what the program wrote that B became");
    a.me.must(a.me.must(std::move(key).close(), "A closes").close(), "and frees");
    a.leave();
  });
  story.actor("B", [&](Actor& me) {
    const Party b(me);
    b.introduce_myself_to("A");
    const Bytes ticket = me.receive_bytes("A");
    std::ofstream(message, std::ios::binary).write(reinterpret_cast<const char*>(ticket.data()), ticket_size);
    const ChildEnd child = run_program({DEVSHARE_IMPORTER, message});
    me.expect(child.exited && child.code == 2, "a program that B starts is another process: " + child.in_words());
    me.expect(child.output.find("not_admitted") != std::string::npos, "and not admitted: " + child.output);
    me.exec({DEVSHARE_IMPORTER, message});
  });
  story.run();
  CHECK(story.output("B").find("imported 4096 bytes") != std::string::npos);
}

TEST_CASE("R13 R17 a ticket does not help who was not admitted, nor can a friend admit it") {
  Story story;
  story.actor("A", [](Actor& me) {
    const Party a(me);
    auto key = me.must(export_key(a.allocate(pattern(4 * KiB))), "A exports");
    a.share_with("C", key);
    me.pause_until("B", "refused");
    me.pause_until("C", "closed");
  });
  story.actor("C", [](Actor& me) {
    const Party c(me);
    c.introduce_myself_to("A");
    const Bytes message = me.receive_bytes("A");
    me.send("B", message);  // passes its ticket on
    const ReceivedTicket ticket = me.must(ReceivedTicket::decode(message), "well-formed");
    me.must(c.device.make_current(), "the device is current");
    std::int32_t friends_pid = c.pid_of("B").to_message();
    c.call_refused(api().aclrtIpcMemSetImportPid(key_in(ticket).text(), &friends_pid, 1), code::rt_drv_internal,
                   Reason::not_the_exporter, "C admits its friend");
    me.step("tried to admit");
    ImportedMapping mapping = c.import(ticket);
    me.expect(c.read(mapping.bytes()) == pattern(4 * KiB), "C itself reads");
    me.pause_until("B", "refused");
    me.must(mapping.check(), "and goes on doing so");
    me.step("closed");
  });
  story.actor("B", [](Actor& me) {
    const Party b(me);
    const ReceivedTicket ticket = b.ticket_from("C");
    b.introduce_myself_to("C");
    me.pause_until("C", "tried to admit");
    b.refused(ImportedMapping::open(ticket, b.device), not_admitted, "B holds C's ticket, and is refused");
    b.has_given_everything_back();
    me.step("refused");
  });
  story.run();
}

TEST_CASE("another user's process is refused, as importer and as exporter, whatever was admitted") {
  if (::geteuid() != 0) DEVSHARE_SKIP("only root can play two users");
  constexpr uid_t nobody = 65534;
  const auto become_nobody = [](Actor& me) {
    me.expect(::setgroups(0, nullptr) == 0 && ::setgid(nobody) == 0 && ::setuid(nobody) == 0, "it is another user now");
  };
  const Refusal other_user{Errc::not_authorised, code::rt_drv_internal, Reason::user_refused};
  for (const bool exporter_is_nobody : {false, true}) {
    INFO((exporter_is_nobody ? "A is nobody" : "B is nobody"));
    Story story;
    story.actor("A", [&](Actor& me) {
      if (exporter_is_nobody) become_nobody(me);
      const Party a(me);
      auto key = me.must(export_key(a.allocate(4 * KiB)), "A exports");
      auto to_all = me.must(export_key_unrestricted(a.allocate(4 * KiB)), "and to everybody");
      a.share_with("B", key);
      a.send("B", me.must(to_all.ticket(), "a ticket for everybody"));
      me.pause_until("B", "done");
      me.expect(soon([] { return host::counters().connections == 0; }), "nobody is connected");
    });
    story.actor("B", [&](Actor& me) {
      if (!exporter_is_nobody) become_nobody(me);
      const Party b(me);
      b.introduce_myself_to("A");
      for (int i = 0; i < 2; ++i) {
        b.refused(ImportedMapping::open(b.ticket_from("A"), b.device), other_user, "another user's memory");
      }
      b.leave();
      me.step("done");
    });
    story.run();
  }
}
