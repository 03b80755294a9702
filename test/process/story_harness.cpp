// SPDX-License-Identifier: Apache-2.0
// The harness of the process tests, tested: whatever it says of others must be true.
#include "support/catch.hpp"
#include "support/sanitizers.hpp"
#include "support/story.hpp"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <thread>
#include <vector>

using namespace devshare::test;
using namespace std::chrono_literals;

namespace {

bool has_text(const std::vector<std::string>& problems, const std::string& part) {
  return std::any_of(problems.begin(), problems.end(),
                     [&](const std::string& text) { return text.find(part) != std::string::npos; });
}

std::string all_of(const std::vector<std::string>& problems) {
  std::string text;
  for (const std::string& problem : problems) text += problem + "\n";
  return text;
}

}  // namespace

TEST_CASE("two actors exchange messages, steps and values, and the story passes") {
  struct Ticket {
    int number;
    char mark;
  };
  Story story;
  const pid_t supervisor = ::getpid();
  story.actor("A", [&](Actor& me) {
    me.expect(::getpid() != supervisor && ::getppid() == supervisor, "A is a child of the supervisor");
    me.send("B", Ticket{7, 'x'});
    me.send("B", std::string("a text"));
    me.send("B", Bytes(1000, std::byte{3}));
    me.step("sent");
    me.pause_until("B", "read");
    me.expect_equal(me.receive<int>("B"), 8, "B answers");
    me.give("pid", ::getpid());
    me.give("text", "some words");
  });
  story.actor("B", [](Actor& me) {
    me.pause_until("A", "sent");
    const auto ticket = me.receive<Ticket>("A");
    me.expect(ticket.number == 7 && ticket.mark == 'x', "the ticket arrives whole");
    me.expect_equal(me.receive<std::string>("A"), "a text", "messages keep their order");
    me.expect(me.receive<Bytes>("A") == Bytes(1000, std::byte{3}), "bytes arrive whole");
    me.step("read");
    me.send("A", ticket.number + 1);
    me.give("pid of A", me.pid_of("A"));
  });
  story.run();
  CHECK(story.checked() == 5);
  CHECK(story.given<pid_t>("A", "pid") == story.given<pid_t>("B", "pid of A"));
  CHECK(story.given<pid_t>("A", "pid") > 0);
  CHECK(story.given<std::string>("A", "text") == "some words");
  CHECK(story.steps() == std::vector<std::string>{"A: sent", "B: read"});
}

TEST_CASE("a failed expectation fails the story with its sentence, file and line") {
  Story story;
  story.actor("A", [](Actor& me) {
    if (!me.expect_equal(1 + 1, 3, "sums are right")) me.step("after the failure");
    me.expect(true, "and it went on");
  });
  const auto problems = story.play();
  INFO(all_of(problems));
  REQUIRE(problems.size() == 1);
  CHECK_THAT(problems[0], contains("A: sums are right: 2 instead of 3 (") && contains("story_harness.cpp:"));
  CHECK(story.checked() == 2);
  CHECK(story.steps().size() == 1);
}

TEST_CASE("a failure that ends an actor is told once, and who waits for it is told too") {
  Story story;
  story.actor("A", [](Actor& me) { me.fail("A cannot go on"); });
  story.actor("B", [](Actor& me) { me.receive<int>("A"); });
  story.actor("C", [](Actor& me) { me.pause_until("A", "done"); });
  const auto problems = story.play();
  INFO(all_of(problems));
  CHECK(problems.size() == 3);
  CHECK(has_text(problems, "A: A cannot go on"));
  CHECK(has_text(problems, "B: A ended without sending what was waited for"));
  CHECK(has_text(problems, "C: A ended without reaching 'done'"));
}

TEST_CASE("a hang is ended by the watchdog and told in words") {
  Story story(1s);
  story.actor("A", [](Actor& me) {
    me.step("begun");
    me.receive<int>("B");
  });
  story.actor("B", [](Actor&) {
    for (;;) ::pause();
  });
  const auto problems = story.play();
  INFO(all_of(problems));
  CHECK(has_text(problems, "A was still there after"));
  CHECK(has_text(problems, "waiting for a message from B; its last step was 'begun'"));
  CHECK(has_text(problems, "B was still there after"));
}

TEST_CASE("a kill happens at its step, not before and not after") {
  Story story;
  const std::string trace = story.file("trace");
  story.actor("A", [&](Actor& me) {
    const int fd = ::open(trace.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
    me.expect(::write(fd, "1", 1) == 1, "A writes");
    me.step("first");
    me.expect(::write(fd, "2", 1) == 1, "A writes again");
    me.step("second");
    me.expect(::write(fd, "3", 1) == 1 && false, "A never comes here");
  });
  story.actor("B", [&](Actor& me) {
    me.pause_until_ended("A");
    char text[4] = {};
    const int fd = ::open(trace.c_str(), O_RDONLY);
    me.expect_equal(::read(fd, text, sizeof(text)), 2, "A wrote twice");
    me.expect(::kill(me.pid_of("A"), 0) != 0, "A is gone for the kernel");
  });
  story.kill("A", at("second"));
  story.run();
  CHECK(story.steps() == std::vector<std::string>{"A: first", "A: second"});
}

TEST_CASE("a kill at another's step is done when that step returns") {
  Story story;
  story.actor("A", [](Actor& me) {
    me.step("ready");
    for (;;) ::pause();
  });
  story.actor("B", [](Actor& me) {
    me.pause_until("A", "ready");
    const pid_t a = me.pid_of("A");
    me.expect(::kill(a, 0) == 0, "A lives");
    me.step("now");
    me.expect(::kill(a, 0) != 0, "A is dead and reaped");
  });
  story.kill("A", at("B", "now"));
  story.run();
}

TEST_CASE("a kill may come some time after a step") {
  Story story;
  story.actor("A", [](Actor& me) {
    me.expect(true, "A lives");
    me.step("working");
    for (;;) ::pause();
  });
  story.kill("A", at("working").plus(20ms));
  story.run();
}

TEST_CASE("what is planned and never comes fails the story") {
  Story story;
  story.actor("A", [](Actor& me) { me.expect(true, "A is here"); });
  story.kill("A", at("a step nobody takes"));
  const auto problems = story.play();
  INFO(all_of(problems));
  CHECK(has_text(problems, "A was to be killed at the step 'a step nobody takes' of A, which never came"));
}

TEST_CASE("a plan about nobody fails the story before it starts") {
  Story story;
  bool* never = nullptr;
  story.actor("A", [=](Actor&) { *never = true; });
  story.kill("Z", at("A", "step"));
  CHECK(has_text(story.play(), "a plan speaks of Z"));
}

TEST_CASE("an actor is stopped at one moment and resumed at another") {
  Story story;
  story.actor("A", [](Actor& me) {
    me.step("before");
    me.step("after");
  });
  story.actor("B", [](Actor& me) {
    me.pause_until("A", "before");
    char state = 0;
    FILE* file = ::fopen(fmt::format("/proc/{}/stat", me.pid_of("A")).c_str(), "r");
    me.expect(file != nullptr && ::fscanf(file, "%*d (%*[^)]) %c", &state) == 1, "A can be looked at");
    me.expect_equal(state, 'T', "A is stopped");
    me.step("seen");
    me.pause_until("A", "after");
  });
  story.stop("A", at("before"));
  story.resume("A", at("B", "seen"));
  story.run();
}

TEST_CASE("an actor that is stopped for good does not hold the story up") {
  Story story;
  story.actor("A", [](Actor& me) { me.step("stops"); });
  story.actor("B", [](Actor& me) {
    me.pause_until("A", "stops");
    me.expect(true, "B goes on");
  });
  story.stop("A", at("stops"));
  story.run();
}

TEST_CASE("an actor may start late") {
  Story story;
  story.actor("A", [](Actor& me) {
    me.step("alone");
    me.send("B", 1);
  });
  story.actor("B", [](Actor& me) { me.expect_equal(me.receive<int>("A"), 1, "the message was kept"); });
  story.start("B", at("A", "alone"));
  story.run();
}

TEST_CASE("an actor may start late under a number that was known before") {
  if (const std::string why = why_no_fork_as(); !why.empty()) DEVSHARE_SKIP(why);
  const pid_t number = unused_pid();
  REQUIRE(number > 0);
  Story story;
  story.actor("A", [number](Actor& me) {
    me.expect(::kill(number, 0) != 0, "nobody has the number yet");
    me.step("admitted");
    me.pause_until("B", "there");
    me.expect(::kill(number, 0) == 0, "now somebody has");
  });
  story.actor("B", Role{.pid = number}, [number](Actor& me) {
    me.expect_equal(::getpid(), number, "B has the number");
    me.step("there");
    me.pause_until_ended("A");
  });
  story.start("B", at("A", "admitted"));
  story.run();
}

TEST_CASE("an actor that crashes fails the story unless its end was foreseen") {
  const auto crash = [](Actor& me) {
    me.expect(true, "A is here");
    me.step("before the fault");
    ::signal(SIGSEGV, SIG_DFL);  // a sanitizer would turn it into an exit
    ::raise(SIGSEGV);
  };
  Story one;
  one.actor("A", crash);
  const auto problems = one.play();
  INFO(all_of(problems));
  CHECK(has_text(problems, "A was ended by signal 11"));
  CHECK(has_text(problems, "its last step was 'before the fault'"));

  Story other;
  other.actor("A", crash);
  other.ends("A", by_signal(SIGSEGV));
  other.run();
}

TEST_CASE("an actor that was to crash and does not fails the story") {
  Story story;
  story.actor("A", [](Actor& me) { me.expect(true, "A is here"); });
  story.ends("A", by_signal(SIGSEGV));
  CHECK(has_text(story.play(), "A came to its end; it was ended by signal 11"));
}

TEST_CASE("an actor that exits on its way fails the story") {
  Story story;
  story.actor("A", [](Actor& me) {
    me.expect(true, "A is here");
    ::_exit(0);
  });
  CHECK(has_text(story.play(), "A exited with code 0"));
}

TEST_CASE("an actor may become a program, whose output and exit code are kept") {
  Story story;
  story.actor("A", [](Actor& me) {
    me.expect(true, "A is here");
    me.exec({"/bin/sh", "-c", "echo spoken; echo $DEVSHARE_HOST_STATE"});
  });
  story.program("B", {"/bin/sh", "-c", "exit 3"});
  story.ends("B", with_code(3));
  story.run();
  CHECK(story.output("A") == "spoken\n" + story.state_directory() + "\n");
}

TEST_CASE("a program that fails fails the story, with its output") {
  Story story;
  story.program("A", {"/bin/sh", "-c", "echo it went wrong >&2; exit 3"});
  const auto problems = story.play();
  INFO(all_of(problems));
  CHECK(has_text(problems, "A exited with code 3"));
  CHECK(has_text(problems, "output of A:\nit went wrong"));
}

TEST_CASE("all actors of a story have the same state directory and no other story has it") {
  Story one;
  Story other;
  CHECK(one.state_directory() != other.state_directory());
  for (Story* story : {&one, &other}) {
    for (const char* name : {"A", "B"}) {
      story->actor(name, [story](Actor& me) {
        me.expect_equal(std::string(std::getenv("DEVSHARE_HOST_STATE")), story->state_directory(), "it is the story's");
      });
    }
    story->run();
  }
}

TEST_CASE("two actors in pid namespaces of their own are both number one") {
  if (const std::string why = why_no(Isolation::pid); !why.empty()) DEVSHARE_SKIP(why);
  Story story;
  for (const char* name : {"A", "B"}) {
    story.actor(name, Role{.isolation = Isolation::pid}, [](Actor& me) {
      me.expect_equal(::getpid(), 1, "it is number one");
      char link[32] = {};
      me.expect(::readlink("/proc/self", link, sizeof(link) - 1) == 1 && link[0] == '1', "its /proc agrees");
      me.step("there");
    });
  }
  story.actor("C", [](Actor& me) {
    me.pause_until("A", "there");
    me.pause_until("B", "there");
    me.expect(me.pid_of("A") != me.pid_of("B"), "outside they have different numbers");
  });
  story.run();
}

TEST_CASE("an actor in a pid namespace can be killed at its step") {
  if (const std::string why = why_no(Isolation::pid); !why.empty()) DEVSHARE_SKIP(why);
  Story story;
  story.actor("A", Role{.isolation = Isolation::pid}, [](Actor& me) {
    me.step("here");
    me.fail("A never comes here");
  });
  story.actor("B", [](Actor& me) {
    me.pause_until_ended("A");
    me.expect(true, "B sees the end of A");
  });
  story.kill("A", at("here"));
  story.run();
}

TEST_CASE("an actor in a user namespace keeps its user") {
  if (const std::string why = why_no(Isolation::user | Isolation::pid); !why.empty()) DEVSHARE_SKIP(why);
  const uid_t user = ::getuid();
  Story story;
  story.actor("A", Role{.isolation = Isolation::user | Isolation::pid}, [user](Actor& me) {
    me.expect_equal(::getuid(), user, "the user is the same");
    me.expect_equal(::getpid(), 1, "it is number one");
  });
  story.run();
}

TEST_CASE("processes that an actor forked do not outlive it") {
  Story story;
  story.actor("A", [](Actor& me) {
    const pid_t forked = ::fork();
    if (forked == 0) {
      for (;;) ::pause();
    }
    me.expect(forked > 0, "A forks");
    me.give("forked", forked);
  });
  story.run();
  const auto forked = story.given<pid_t>("A", "forked");
  REQUIRE(forked > 0);
  // It is nobody's child that we could wait for; init reaps it.
  for (int tried = 0; tried < 10000 && ::kill(forked, 0) == 0; ++tried) {
    std::this_thread::sleep_for(1ms);
    FILE* file = ::fopen(fmt::format("/proc/{}/stat", forked).c_str(), "r");
    char state = 0;
    const bool zombie = file != nullptr && ::fscanf(file, "%*d (%*[^)]) %c", &state) == 1 && state == 'Z';
    if (file != nullptr) ::fclose(file);
    if (zombie) break;
    REQUIRE(tried < 9999);
  }
}

TEST_CASE("an actor that leaks memory fails the story in a build that can see it") {
  if (!sees_leaks()) DEVSHARE_SKIP("only a build with AddressSanitizer sees leaks");
  Story story;
  story.actor("A", [](Actor& me) { me.expect(lose_memory(), "A takes memory"); });
  const auto problems = story.play();
  INFO(all_of(problems));
  CHECK(has_text(problems, "A: it leaks memory"));
  CHECK(has_text(problems, "byte(s) leaked in"));
}

TEST_CASE("a data race in an actor fails the story in a build that can see it") {
  if (!sees_races()) DEVSHARE_SKIP("only a build with ThreadSanitizer sees races");
  Story story;
  story.actor("A", [](Actor& me) {
    int shared = 0;
    std::thread other([&] { ++shared; });
    ++shared;
    other.join();
    me.expect(shared > 0, "A counts");
  });
  const auto problems = story.play();
  INFO(all_of(problems));
  CHECK(has_text(problems, "A exited with code 66"));
  CHECK(has_text(problems, "data race"));
}

TEST_CASE("an actor's threads may all speak") {
  Story story;
  story.actor("A", [](Actor& me) {
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&me, i] {
        for (int n = 0; n < 50; ++n) me.expect(true, "a thread speaks");
        me.step(fmt::format("thread {}", i));
      });
    }
    for (std::thread& thread : threads) thread.join();
  });
  story.run();
  CHECK(story.checked() == 200);
  CHECK(story.steps().size() == 4);
}

TEST_CASE("a story is played once") {
  Story story;
  story.actor("A", [](Actor& me) { me.expect(true, "A is here"); });
  CHECK(story.play().empty());
  CHECK(has_text(story.play(), "played once"));
}
