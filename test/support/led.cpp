// SPDX-License-Identifier: Apache-2.0
#include "led.hpp"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <utility>

namespace devshare::test {
namespace {

// A call that no kernel has: it does nothing but show up in the tracer.
constexpr unsigned long mark = 0x6476736c;
constexpr unsigned long begins = 1;
constexpr unsigned long ends = 2;

void set_mark(unsigned long kind) { ::syscall(SYS_prctl, mark, kind, 0, 0, 0); }

// Of a process that stands at the entry or the exit of a call: whether it is an entry, and a mark.
struct Stand {
  bool entry = false;
  unsigned long mark_kind = 0;
};
Stand stand_of(pid_t process) {
  __ptrace_syscall_info info;
  if (::ptrace(PTRACE_GET_SYSCALL_INFO, process, sizeof info, &info) <= 0) return {};
  if (info.op != PTRACE_SYSCALL_INFO_ENTRY) return {};
  const bool marks = info.entry.nr == SYS_prctl && info.entry.args[0] == mark;
  return {.entry = true, .mark_kind = marks ? info.entry.args[1] : 0};
}

pid_t wait_for(pid_t process, int* status, int options) {
  for (;;) {
    const pid_t got = ::waitpid(process, status, options);
    if (got >= 0 || errno != EINTR) return got;
  }
}

}  // namespace

void begin_steps() { set_mark(begins); }
void end_steps() { set_mark(ends); }

Led::Led(const std::function<void()>& body) {
  int gate[2];
  if (::pipe2(gate, O_CLOEXEC) != 0) std::abort();
  std::cout.flush();
  std::fflush(nullptr);
  child_ = ::fork();
  if (child_ < 0) std::abort();
  if (child_ == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    ::close(gate[1]);
    char go = 0;
    if (::read(gate[0], &go, 1) != 1) ::_exit(70);
    ::close(gate[0]);
    body();
    std::cout.flush();
    std::fflush(nullptr);
    ::_exit(0);
  }
  ::close(gate[0]);
  gate_ = gate[1];
  led_ = ::ptrace(PTRACE_SEIZE, child_, nullptr, PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL) == 0;
  // Stopped once by force, so that the first resume turns the reports of calls on.
  if (led_) ::ptrace(PTRACE_INTERRUPT, child_, nullptr, nullptr);
}

Led::~Led() {
  if (!ended_) {
    ::kill(child_, SIGKILL);
    wait_for(child_, &status_, __WALL);
  }
  if (gate_ >= 0) ::close(gate_);
}

bool Led::to_step(int n) {
  if (gate_ >= 0) {
    [[maybe_unused]] const auto written = ::write(gate_, "g", 1);
    ::close(std::exchange(gate_, -1));
  }
  int step = 0;
  bool counting = false;
  while (led_) {
    int status = 0;
    if (wait_for(child_, &status, __WALL) != child_) std::abort();
    if (!WIFSTOPPED(status)) {
      take(status);
      return false;
    }
    const bool at_call = WSTOPSIG(status) == (SIGTRAP | 0x80);
    const bool of_ptrace = (status >> 16) != 0;
    if (at_call) {
      const Stand stand = stand_of(child_);
      if (stand.mark_kind == ends) {
        let_go();
        return false;
      }
      if (stand.entry && counting && ++step == n) return true;
      if (stand.mark_kind == begins) counting = true;
    }
    ::ptrace(PTRACE_SYSCALL, child_, nullptr, at_call || of_ptrace ? 0 : WSTOPSIG(status));
  }
  return false;
}

void Led::kill() {
  ::kill(child_, SIGKILL);
  int status = 0;
  do {
    if (wait_for(child_, &status, __WALL) != child_) std::abort();
  } while (WIFSTOPPED(status));
  take(status);
}

void Led::stop() {
  ::kill(child_, SIGSTOP);
  let_go();
  int status = 0;
  if (wait_for(child_, &status, __WALL | WUNTRACED) != child_) std::abort();
  if (!WIFSTOPPED(status)) take(status);
}

void Led::go_on() { ::kill(child_, SIGCONT); }

bool Led::ends_well() {
  while (!ended_) {
    int status = 0;
    if (wait_for(child_, &status, __WALL) != child_) std::abort();
    if (!WIFSTOPPED(status)) take(status);
  }
  return WIFEXITED(status_) && WEXITSTATUS(status_) == 0;
}

std::string Led::end_in_words() const {
  if (!ended_) return "it is there still";
  return WIFSIGNALED(status_) ? "it ended by signal " + std::to_string(WTERMSIG(status_))
                              : "it exited with code " + std::to_string(WEXITSTATUS(status_));
}

void Led::take(int status) {
  ended_ = true;
  led_ = false;
  status_ = status;
}

void Led::let_go() {
  ::ptrace(PTRACE_DETACH, child_, nullptr, nullptr);
  led_ = false;
}

std::string why_no_leading() {
  Led led([] {
    begin_steps();
    ::syscall(SYS_getpid);
    end_steps();
  });
  return led.to_step(1) ? "" : std::string("processes cannot be traced here: ") + std::strerror(errno);
}

}  // namespace devshare::test
