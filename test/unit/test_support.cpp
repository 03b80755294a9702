// SPDX-License-Identifier: Apache-2.0
// What tests/support promises to every other test.
#include "support/catch.hpp"
#include "support/child.hpp"
#include "support/descriptors.hpp"
#include "support/isolation.hpp"
#include "support/sanitizers.hpp"
#include "support/temp_directory.hpp"
#include "support/watchdog.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <string>
#include <thread>

using namespace devshare::test;
using namespace std::chrono_literals;

namespace {
std::string state_of_an_earlier_case;
}

TEST_CASE("a case finds a state directory of its own in DEVSHARE_HOST_STATE") {
  const char* state = std::getenv("DEVSHARE_HOST_STATE");
  REQUIRE(state != nullptr);
  struct stat info {};
  REQUIRE(::stat(state, &info) == 0);
  CHECK((info.st_mode & 07777) == 0700);
  CHECK(state != state_of_an_earlier_case);
  state_of_an_earlier_case = state;
  ::setenv("DEVSHARE_HOST_DEVICES", "1", 1);
}

TEST_CASE("a case finds neither the state nor the settings of the one before it") {
  const char* state = std::getenv("DEVSHARE_HOST_STATE");
  REQUIRE(state != nullptr);
  CHECK(state != state_of_an_earlier_case);
  CHECK(std::getenv("DEVSHARE_HOST_DEVICES") == nullptr);
}

TEST_CASE("a temporary directory goes with all that is in it") {
  std::string path;
  {
    TempDirectory directory("gone");
    path = directory.path();
    std::ofstream(directory.file("content")) << "bytes";
    struct stat info {};
    REQUIRE(::stat(directory.file("content").c_str(), &info) == 0);
  }
  struct stat info {};
  CHECK(::stat(path.c_str(), &info) == -1);
}

TEST_CASE("a child may start threads, whatever those of its parent were at when it forked") {
  if (sees_races()) DEVSHARE_SKIP("ThreadSanitizer does not follow threads that a child of several starts");
  ChildOptions options;
  options.leaks = false;  // of the parent's threads
  options.limit = 2s;
  for (int round = 0; round < 20; ++round) {
    std::thread begins([] {});
    const ChildEnd end = in_child([] { std::thread([] {}).join(); }, options);
    begins.join();
    INFO(end.in_words());
    REQUIRE(end.good());
  }
}

TEST_CASE("a child's end and output come back") {
  const ChildEnd good = in_child([] { ::printf("hello\n"); });
  INFO(good.in_words());
  CHECK(good.good());
  CHECK(good.output == "hello\n");

  const ChildEnd refused = in_child([] { demand(1 > 2, "one is more than two"); });
  CHECK(refused.exited);
  CHECK(refused.code == 1);
  CHECK_THAT(refused.output, contains("demanded: one is more than two"));

  const ChildEnd killed = in_child([] { ::raise(SIGKILL); });
  CHECK_FALSE(killed.exited);
  CHECK(killed.signal == SIGKILL);

  const ChildEnd hung = in_child([] { for (;;) ::pause(); }, {.limit = 1s, .set = {}});
  CHECK(hung.timed_out);
}

TEST_CASE("a program runs with the variables it is given") {
  const ChildEnd end =
      run_program({"/bin/sh", "-c", "echo $DEVSHARE_HOST_PROFILE; exit 4"}, {.set = {{"DEVSHARE_HOST_PROFILE", "950"}}});
  CHECK(end.exited);
  CHECK(end.code == 4);
  CHECK(end.output == "950\n");
  CHECK(run_program({"/no/such/program"}).code == 127);
}

TEST_CASE("descriptors are counted exactly") {
  const std::size_t before = count_descriptors();
  const int fd = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  REQUIRE(fd >= 0);
  CHECK(count_descriptors() == before + 1);
  ::close(fd);
  CHECK(count_descriptors() == before);
}

TEST_CASE("a watchdog ends what does not end") {
  const ChildEnd end = in_child([] {
    Watchdog watchdog("the sleep", 1s);
    for (;;) ::pause();
  });
  INFO(end.in_words());
  CHECK(end.signal == SIGABRT);
  CHECK_THAT(end.output, contains("watchdog: the sleep did not end in 1 s"));
  const ChildEnd quick = in_child([] { Watchdog watchdog("nothing", 1s); });
  CHECK(quick.good());
}

TEST_CASE("a system call can be made to fail in a child") {
  if (const std::string why = why_no_refused_system_calls(); !why.empty()) DEVSHARE_SKIP(why);
  const ChildEnd end = in_child([] {
    demand(refuse_system_call(SYS_memfd_create, ENOSYS) == 0, "the filter is taken");
    errno = 0;
    demand(::syscall(SYS_memfd_create, "x", 0) == -1 && errno == ENOSYS, "memfd_create fails as asked");
    demand(::syscall(SYS_getppid) > 0, "another call works");
  });
  INFO(end.in_words());
  CHECK(end.good());
}

TEST_CASE("a child that leaks memory is told by a build that can see it") {
  if (!devshare::test::sees_leaks()) DEVSHARE_SKIP("only a build with AddressSanitizer sees leaks");
  const ChildEnd end = in_child([] { demand(lose_memory(), "there is memory"); });
  INFO(end.in_words());
  CHECK(end.code == 1);
  CHECK_THAT(end.output, contains("byte(s) leaked in"));
}
