// SPDX-License-Identifier: Apache-2.0
// Death in the middle of sharing: the exporter or the importer killed, or stopped, at every step of the story. Who
// survives gets its success or a typed error and never hangs, and nothing is left of who died but one inert file.
#include "aftermath.hpp"
#include "support/sharing.hpp"
#include "support/soak.hpp"
#include "support/soon.hpp"

#include <chrono>
#include <optional>
#include <string>
#include <utility>
#include <vector>

using namespace devshare;
using namespace devshare::test;
using namespace std::chrono_literals;

namespace {

constexpr std::size_t KiB = 1024;
constexpr std::size_t size = 256 * KiB;

constexpr Refusal exporter_gone{Errc::exporter_gone, code::rt_drv_internal, Reason::exporter_gone};

// When somebody dies: at a step, or a while after it, in the middle of what follows.
struct Death {
  std::string of;  // whose step
  std::string step;
  std::chrono::milliseconds later{0};
  std::optional<acl::Entry> slow{};  // a call that takes its time in both processes, so that death finds it under way
  bool unserved = false;             // the exporter is stopped at the importer's request, so that this is under way

  Moment moment() const { return at(of, step).plus(later); }
  std::string in_words() const {
    return fmt::format("at '{}' of {}{}{}", step, of,
                       later.count() != 0 ? fmt::format(" and {} ms", later.count()) : "",
                       unserved ? ", unserved" : "");
  }
};

constexpr std::chrono::milliseconds slow_call{300};
constexpr std::chrono::milliseconds into_it{100};

// Every death, on the exporter's device and on another.
void for_each(const std::vector<Death>& deaths, void (*kill)(const Death& death, std::int32_t device)) {
  const int rounds = times_over();
  for (int round = 0; round < rounds; ++round) {
    for (const Death& death : deaths) {
      kill(death, 0);
      if (death.step != "copying") kill(death, 1);  // R42
    }
  }
}

// --- the exporter dies ----------------------------------------------------------------------------------------------

// The exporter, which has no say in when it dies.
void export_until_killed(Actor& me, const Death& death) {
  const Party a(me);
  me.step("opened");
  DeviceMemory memory = a.allocate(pattern(size));
  me.step("allocated");
  auto key = me.must(export_key(std::move(memory)), "A exports");
  me.step("exported");
  const auto ticket = me.must(key.admit(a.pid_of("B")), "B is admitted");
  me.step("admitted");
  a.send("B", ticket);
  me.step("sent");
  me.pause_until("B", "using");  // a death at a later step of B's finds us here
  if (death.of == "B") me.pause_until("B", "never");
  if (death.slow) host::delay(*death.slow, static_cast<std::uint32_t>(slow_call.count()));
  me.step("closing");
  DeviceMemory back = me.must(std::move(key).close(), "A closes");
  me.step("closed");
  me.must(std::move(back).close(), "A frees");
  me.step("freed");
  me.pause_until("B", "never");  // death comes, however late
}

// The importer that outlives it. Every result is right if it says what is so: success while A lives, exporter_gone
// from some moment on, and never success again.
class Survivor {
 public:
  Survivor(Actor& me, const Death& death, std::int32_t device) : me_(me), death_(death), b_(me, device) {}

  void play() {
    pass("opened");
    b_.introduce_myself_to("A");
    const std::optional<Bytes> message = me_.receive_if_sent("A");
    if (message) {
      const ReceivedTicket ticket = me_.must(ReceivedTicket::decode(*message), "the ticket is whole");
      pass("received");
      if (death_.slow) host::delay(*death_.slow, static_cast<std::uint32_t>(slow_call.count()));
      pass("importing");
      auto opened = ImportedMapping::open(ticket, b_.device);
      if (tells_truly(opened, exporter_gone, "the import")) use(*std::move(opened));
      wait_until_a_is_dead();
      tells_truly(ImportedMapping::open(ticket, b_.device), exporter_gone, "another import");
    }
    wait_until_a_is_dead();
    me_.expect_equal(host::bytes_in_use(0) + host::bytes_in_use(1), 0U, "the devices are empty");
    host::clear();
    b_.leave();
  }

 private:
  void use(ImportedMapping mapping) {
    pass("imported");
    tells_truly(mapping.check(), {Errc::exporter_gone}, "check()");
    if (b_.device.id() == DeviceId{0}) copy(mapping);
    const auto seen = host::view(mapping.bytes());
    tells_truly(seen, {Errc::exporter_gone, 0, Reason::exporter_gone}, "a view");
    pass("using");
    if (death_.of == "A") wait_until_a_is_dead();
    if (seen)
      me_.expect(Bytes(seen->begin(), seen->end()) == pattern(size), "what a kernel has in hand stays readable");
    tells_truly(mapping.check(), {Errc::exporter_gone}, "check(), once more");
    pass("closing");
    me_.must(std::move(mapping).close(), "the close, whatever became of A");
    b_.has_given_everything_back();
  }

  // Copies until they fail, if A dies here, else a few.
  void copy(const ImportedMapping& mapping) {
    const bool dies_here = death_.of == "B" && death_.step == "copying";
    pass("copying");
    Bytes bytes(size);
    for (int i = 0; dies_here || i < 8; ++i) {
      if (!tells_truly(copy_to_host(b_.device, bytes, mapping.bytes()), exporter_gone, "a copy")) return;
      me_.expect(bytes == pattern(size), "a copy that succeeds has the bytes");
    }
  }

  void pass(std::string_view step) {
    me_.step(step);
    // A death at a step of ours has happened when the step returns; any other may happen at any time.
    if (death_.of == "B" && death_.step == step) (death_.later.count() == 0 ? gone_ : going_) = true;
    if (death_.of == "A") going_ = true;
  }

  void wait_until_a_is_dead() {
    me_.pause_until_ended("A");
    gone_ = true;
  }

  // Whether it succeeded.
  template <class R>
  bool tells_truly(const R& result, const Refusal& if_gone, std::string_view what) {
    if (result) {
      me_.expect(!gone_, fmt::format("{} says that A is there, and it is not", what));
      return true;
    }
    me_.expect(gone_ || going_, fmt::format("{} fails, with A there: {}", what, detail::plain_error(result.error())));
    b_.refused(result, if_gone, what);
    gone_ = true;
    return false;
  }

  Actor& me_;
  const Death& death_;
  const Party b_;
  bool gone_ = false;   // A has lost the memory, for certain
  bool going_ = false;  // it may have
};

void kill_the_exporter(const Death& death, std::int32_t device) {
  INFO("A is killed " << death.in_words() << ", B on device " << device);
  Story story;
  story.actor("A", [&](Actor& me) { export_until_killed(me, death); });
  story.actor("B", [&](Actor& me) { Survivor(me, death, device).play(); });
  if (death.unserved) story.stop("A", at("B", "importing"));
  story.kill("A", death.moment());
  story.run();
  nothing_is_left_of(story);
}

}  // namespace

TEST_CASE("R18 R20 B070 the exporter is killed at every step: the importer is told and goes on") {
  using acl::Entry;
  const std::vector<Death> deaths{
      {"A", "opened"},
      {"A", "allocated"},
      {"A", "exported"},
      {"A", "admitted"},
      {"A", "sent"},
      {"B", "received"},
      {"B", "importing"},
      {"B", "importing", into_it, Entry::aclrtIpcMemImportByKey},
      {"B", "importing", into_it, std::nullopt, true},
      {"B", "imported"},
      {"B", "copying", 20ms},
      {"B", "copying", into_it, Entry::aclrtMemcpy},
      {"B", "using"},
      {"B", "closing"},
      {"B", "closing", into_it, Entry::aclrtIpcMemClose},
      {"A", "closing", into_it, Entry::aclrtIpcMemClose},
      {"A", "closed"},
      {"A", "freed"},
  };
  for_each(deaths, kill_the_exporter);
}

TEST_CASE("B070 with EXPORTER_DEATH=keep the bytes stay with the importer, and new importers are told") {
  const Switches keep{{"EXPORTER_DEATH", "keep"}};
  Story story;
  story.actor("A", [&](Actor& me) {
    const Party a(me, 0, keep);
    auto key = me.must(export_key(a.allocate(pattern(size))), "A exports");
    a.share_with("B", key);
    me.pause_until("B", "imported");
    me.step("dying");
  });
  story.actor("B", [&](Actor& me) {
    const Party b(me, 0, keep);
    b.introduce_myself_to("A");
    const ReceivedTicket ticket = b.ticket_from("A");
    ImportedMapping mapping = b.import(ticket);
    me.step("imported");
    me.pause_until_ended("A");
    me.must(mapping.check(), "the memory is there");
    me.expect(b.read(mapping.bytes()) == pattern(size), "with its bytes");
    me.must(std::move(mapping).close(), "B closes");
    b.refused(ImportedMapping::open(ticket, b.device), exporter_gone, "but it cannot be imported again");
    b.leave();
  });
  story.kill("A", at("dying"));
  story.run();
  nothing_is_left_of(story);
}

// --- the importer dies ----------------------------------------------------------------------------------------------

namespace {

// The importer, which has no say in when it dies.
void import_until_killed(Actor& me, const Death& death, std::int32_t device) {
  const Party b(me, device);
  me.step("opened");
  b.introduce_myself_to("A");
  me.step("introduced");
  const ReceivedTicket ticket = b.ticket_from("A");
  me.step("received");
  if (death.slow) host::delay(*death.slow, static_cast<std::uint32_t>(slow_call.count()));
  me.step("importing");
  ImportedMapping mapping = b.import(ticket);
  me.step("imported");
  if (device == 0) {
    me.step("copying");
    const bool dies_here = death.step == "copying";
    const Bytes bytes = pattern(size);
    for (int i = 0; dies_here || i < 8; ++i) b.write(mapping.bytes(), bytes);
  }
  const auto seen = b.view(mapping.bytes());
  me.step("using");
  me.expect(seen[0] == pattern(1)[0], "the view shows the bytes");
  me.step("closing");
  me.must(std::move(mapping).close(), "B closes");
  me.step("closed");
  me.pause_until("A", "never");  // death comes, however late
}

// The exporter that outlives it: to A nothing happens but that one connection ends.
void export_and_outlive(Actor& me) {
  const Party a(me);
  auto key = me.must(export_key(a.allocate(pattern(size))), "A exports");
  const std::optional<Bytes> introduction = me.receive_if_sent("B");
  if (introduction) {
    std::int32_t number = 0;
    std::memcpy(&number, introduction->data(), sizeof number);
    a.send("B", me.must(key.admit(BarePid::from_peer_message(number)), "B is admitted, dead or alive"));
  }
  me.pause_until_ended("B");
  // One look for both: A may accept, after the first, a connection that waited for it while it was stopped.
  host::Counters left;
  soon([&] {
    left = host::counters();
    return left.connections == 0;
  });
  me.expect(left.connections == 0 && left.keys_exported == 1 && left.allocations == 1,
            "B's connection is gone, and nothing of A's: " + host::in_words(left));
  std::int32_t on = -1;
  a.call_succeeds(api().aclrtDevicePeerAccessStatus(0, 1, &on), "the peer access is asked for");
  me.expect_equal(on, 0, "what B's import enabled ended with B");
  me.expect(a.read(key.bytes()) == pattern(size), "the memory is whole");
  me.step("outlived B");
  a.share_with("C", key);  // and serves on
  me.pause_until("C", "closed");
  me.must(me.must(std::move(key).close(), "A closes").close(), "and frees");
  me.expect_equal(host::bytes_in_use(0) + host::bytes_in_use(1), 0U, "the devices are empty");
  a.leave();
}

void kill_the_importer(const Death& death, std::int32_t device) {
  INFO("B is killed " << death.in_words() << ", on device " << device);
  Story story;
  story.actor("A", [&](Actor& me) { export_and_outlive(me); });
  story.actor("B", [&](Actor& me) { import_until_killed(me, death, device); });
  story.start("C", at("A", "outlived B"));
  story.actor("C", [&](Actor& me) {
    const Party c(me, 0);
    c.introduce_myself_to("A");
    ImportedMapping mapping = c.import(c.ticket_from("A"));
    me.expect(c.read(mapping.bytes()) == pattern(size), "a new importer reads");
    me.must(std::move(mapping).close(), "and closes");
    c.leave();
    me.step("closed");
  });
  if (death.unserved) {
    story.stop("A", at("B", "importing"));
    story.resume("A", death.moment().plus(into_it));
  }
  story.kill("B", death.moment());
  story.run();
  nothing_is_left_of(story);
}

}  // namespace

TEST_CASE("B068 the importer is killed at every step: the exporter keeps everything and serves the next one") {
  using acl::Entry;
  const std::vector<Death> deaths{
      {"B", "opened"},
      {"B", "introduced"},
      {"B", "received"},
      {"B", "importing"},
      {"B", "importing", into_it, Entry::aclrtIpcMemImportByKey},
      {"B", "importing", into_it, std::nullopt, true},
      {"B", "imported"},
      {"B", "copying", 20ms},
      {"B", "copying", into_it, Entry::aclrtMemcpy},
      {"B", "using"},
      {"B", "closing"},
      {"B", "closing", into_it, Entry::aclrtIpcMemClose},
      {"B", "closed"},
  };
  for_each(deaths, kill_the_importer);
}

// --- stopped, not dead ----------------------------------------------------------------------------------------------

TEST_CASE("B003 a stopped exporter costs an importer its deadline, and serves it when it runs again") {
  constexpr auto deadline = 200ms;
  Story story;
  story.actor("A", [](Actor& me) {
    const Party a(me);
    auto key = me.must(export_key(a.allocate(pattern(size))), "A exports");
    a.share_with("B", key);
    a.send("B", me.must(key.admit(a.pid_of("B"), Slice{10, 20}), "a slice of it"));
    auto other = me.must(export_key_unrestricted(a.allocate(pattern(size, 1))), "A exports another");
    a.send("B", me.must(other.ticket(), "for everybody"));
    me.pause_until("B", "closed");
  });
  story.actor("B", [&](Actor& me) {
    const Party b(me, 0, {{"DEADLINE_MS", std::to_string(deadline.count())}});
    b.introduce_myself_to("A");
    b.introduce_myself_to("A");
    const ReceivedTicket ticket = b.ticket_from("A");
    const ReceivedTicket slice = b.ticket_from("A");
    const ReceivedTicket other = b.ticket_from("A");
    const Refusal timed_out{Errc::timed_out, code::rt_drv_internal, Reason::timed_out};
    const auto costs_the_deadline = [&](const ReceivedTicket& unanswered, std::string_view what) {
      const auto begin = std::chrono::steady_clock::now();
      b.refused(ImportedMapping::open(unanswered, b.device), timed_out, what);
      me.expect(std::chrono::steady_clock::now() - begin >= deadline, "and not before the deadline");
    };
    me.step("A stops");
    costs_the_deadline(ticket, "an import, without a connection");
    costs_the_deadline(ticket, "the next one");
    b.has_given_everything_back();
    // On a busy machine a process that runs may need more than the deadline, too.
    const auto served_in_the_end = [&](const ReceivedTicket& asked) {
      for (int tried = 0; tried < 100; ++tried) {
        if (auto opened = ImportedMapping::open(asked, b.device)) return *std::move(opened);
      }
      return b.import(asked);
    };
    me.step("A goes on");
    ImportedMapping mapping = served_in_the_end(ticket);
    me.expect(b.read(mapping.bytes()) == pattern(size), "now it is served");
    me.step("A stops again");
    costs_the_deadline(other, "an import over the connection");
    ImportedMapping part = b.import(slice);  // of what is imported already: nobody is asked
    me.expect(b.read(part.bytes()) == pattern(20, 0, 10), "what is imported can be used");
    b.write(mapping.bytes(), pattern(size, 2));
    me.must(mapping.check(), "a stopped exporter has not gone");
    me.must(std::move(part).close(), "what is imported can be closed");
    me.must(std::move(mapping).close(), "without a word from A");
    b.has_given_everything_back();
    me.step("A goes on again");
    ImportedMapping last = served_in_the_end(other);
    me.expect(b.read(last.bytes()) == pattern(size, 1), "an answer that came too late confuses nobody");
    me.must(std::move(last).close(), "B closes");
    b.leave();
    me.step("closed");
  });
  story.stop("A", at("B", "A stops"));
  story.resume("A", at("B", "A goes on"));
  story.stop("A", at("B", "A stops again"));
  story.resume("A", at("B", "A goes on again"));
  story.run();
}

TEST_CASE("B003 a stopped importer holds nobody up: the exporter serves others and closes") {
  Story story;
  story.actor("A", [](Actor& me) {
    const Party a(me);
    auto key = me.must(export_key(a.allocate(pattern(size))), "A exports");
    a.share_with("B", key);
    me.pause_until("B", "imported");
    me.step("B stops");
    a.share_with("C", key);
    me.pause_until("C", "closed");
    me.must(me.must(std::move(key).close(), "A closes, too early for B (R20)").close(), "and frees");
    me.expect_equal(host::bytes_in_use(0), 0U, "the device is empty");
    me.step("B goes on");
    a.leave();
  });
  story.actor("B", [](Actor& me) {
    const Party b(me);
    b.introduce_myself_to("A");
    ImportedMapping mapping = b.import(b.ticket_from("A"));
    me.step("imported");
    me.pause_until("A", "B goes on");
    b.refused(mapping.check(), {Errc::exporter_gone}, "B finds the memory gone");
    me.must(std::move(mapping).close(), "and closes");
    b.leave();
  });
  story.actor("C", [](Actor& me) {
    const Party c(me);
    c.introduce_myself_to("A");
    ImportedMapping mapping = c.import(c.ticket_from("A"));
    me.expect(c.read(mapping.bytes()) == pattern(size), "C is served");
    me.must(std::move(mapping).close(), "C closes");
    c.leave();
    me.step("closed");
  });
  story.stop("B", at("A", "B stops"));
  story.resume("B", at("A", "B goes on"));
  story.run();
  nothing_is_left_of(story);
}
