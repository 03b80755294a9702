// SPDX-License-Identifier: Apache-2.0
#include "child.hpp"

#include "sanitizers.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <system_error>

namespace devshare::test {
namespace {

using Clock = std::chrono::steady_clock;

ChildEnd run_child(const std::function<void()>& body, const ChildOptions& options) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) std::abort();
  std::cout.flush();
  std::fflush(nullptr);
  const pid_t child = ::fork();
  if (child < 0) std::abort();
  if (child == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    ::setpgid(0, 0);
    if (!under_sanitizer()) {
      for (const int signal : {SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL}) ::signal(signal, SIG_DFL);
    }
    if (::dup2(ends[1], 1) < 0 || ::dup2(ends[1], 2) < 0) ::_exit(70);
    ::close(ends[0]);
    ::close(ends[1]);
    for (const auto& [name, value] : options.set) ::setenv(name.c_str(), value.c_str(), 1);
    body();
    std::cout.flush();
    std::fflush(nullptr);
    ::_exit(options.leaks && leaks_found() ? 1 : 0);
  }
  ::close(ends[1]);

  ChildEnd end;
  const auto limit = options.limit * (under_sanitizer() ? 4 : 1);
  const auto deadline = Clock::now() + limit;
  // Output ends when the last process that has it ends: the child, and what it forked.
  for (;;) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
    pollfd readable{ends[0], POLLIN, 0};
    const int ready = left <= 0 ? 0 : ::poll(&readable, 1, static_cast<int>(left));
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) {
      end.timed_out = true;
      break;
    }
    char buffer[4096];
    const ssize_t size = ::read(ends[0], buffer, sizeof(buffer));
    if (size <= 0) break;
    end.output.append(buffer, static_cast<std::size_t>(size));
  }
  ::close(ends[0]);
  int status = 0;
  // A child may close its output and live on: wait for it, but not for ever.
  while (!end.timed_out && ::waitpid(child, &status, WNOHANG) == 0) {
    if (Clock::now() >= deadline) end.timed_out = true;
    ::usleep(500);
  }
  ::kill(-child, SIGKILL);
  if (end.timed_out) ::waitpid(child, &status, 0);
  if (!end.timed_out && WIFEXITED(status)) {
    end.exited = true;
    end.code = WEXITSTATUS(status);
  } else if (!end.timed_out) {
    end.signal = WTERMSIG(status);
  }
  return end;
}

}  // namespace

std::string ChildEnd::in_words() const {
  std::string text = timed_out ? "still there at its limit"
                     : exited  ? "exited with code " + std::to_string(code)
                               : "ended by signal " + std::to_string(signal) + " (" + ::strsignal(signal) + ")";
  return "the child " + text + "; its output: " + (output.empty() ? "none" : "\n" + output);
}

ChildEnd in_child(const std::function<void()>& body, const ChildOptions& options) { return run_child(body, options); }

void demand(bool condition, const char* sentence, const char* file, int line) {
  if (condition) return;
  std::cout.flush();
  std::cerr << "demanded: " << sentence << " (" << file << ":" << line << ")\n";
  std::fflush(nullptr);
  ::_exit(1);
}

ChildEnd run_program(const std::vector<std::string>& command, const ChildOptions& options) {
  return run_child(
      [&command] {
        std::vector<char*> words;
        for (const std::string& word : command) words.push_back(const_cast<char*>(word.c_str()));
        words.push_back(nullptr);
        ::execvp(words[0], words.data());
        std::cerr << "cannot run " << words[0] << ": " << std::generic_category().message(errno) << "\n";
        ::_exit(127);
      },
      options);
}

}  // namespace devshare::test
