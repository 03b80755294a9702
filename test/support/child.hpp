// SPDX-License-Identifier: Apache-2.0
// One child process: a function or a program, waited for, its output kept.
//
// For a test whose whole point is how a process ends ("touching a device address is a fault"), or that must not leave
// a runtime behind in the test's own process. Several processes that speak to each other are a Story.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace devshare::test {

struct ChildEnd {
  bool exited = false;  // by itself, with `code`
  int code = 0;
  int signal = 0;          // or by this signal
  bool timed_out = false;  // or by us: it was still there at the limit
  std::string output;      // standard output and error together

  bool good() const { return exited && code == 0; }
  std::string in_words() const;  // for INFO: how it ended and what it printed
};

struct ChildOptions {
  std::chrono::seconds limit{60};                        // four times that under a sanitizer
  std::vector<std::pair<std::string, std::string>> set;  // variables added to the environment
  bool leaks = true;  // are looked for; not where other threads of the parent had memory when it forked
};

// The child exits with 0 when `body` returns; with 1 when it leaks memory in a build that can see it.
ChildEnd in_child(const std::function<void()>& body, const ChildOptions& options = {});

// For use in `body`: ends the child with 1 and the sentence unless `condition`.
void demand(bool condition, const char* sentence, const char* file = __builtin_FILE(), int line = __builtin_LINE());

ChildEnd run_program(const std::vector<std::string>& command, const ChildOptions& options = {});

}  // namespace devshare::test

// For a child that checks by demand(): it must end well.
#define CHECK_CHILD(...)                                                                  \
  do {                                                                                    \
    const ::devshare::test::ChildEnd child_end = ::devshare::test::in_child(__VA_ARGS__); \
    INFO(child_end.in_words());                                                           \
    CHECK(child_end.good());                                                              \
  } while (false)
