// SPDX-License-Identifier: Apache-2.0
#include "traced.hpp"

#include "support/sanitizers.hpp"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <sstream>
#include <unordered_map>
#include <utility>

namespace devshare::test {
namespace {

// A call that no kernel has: it does nothing but show up in the tracer.
constexpr unsigned long mark = 0x64767368;
constexpr unsigned long begins = 1;
constexpr unsigned long ends = 2;

constexpr long options = PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACECLONE | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK |
                         PTRACE_O_EXITKILL;

std::string name_of_call(std::uint64_t number) {
  static const std::map<std::uint64_t, const char*> names = {
      {SYS_read, "read"},           {SYS_write, "write"},           {SYS_close, "close"},
      {SYS_fstat, "fstat"},         {SYS_newfstatat, "newfstatat"}, {SYS_poll, "poll"},
      {SYS_mmap, "mmap"},           {SYS_munmap, "munmap"},         {SYS_mprotect, "mprotect"},
      {SYS_madvise, "madvise"},     {SYS_brk, "brk"},               {SYS_pread64, "pread64"},
      {SYS_pwrite64, "pwrite64"},   {SYS_readv, "readv"},           {SYS_writev, "writev"},
      {SYS_socket, "socket"},       {SYS_connect, "connect"},       {SYS_accept4, "accept4"},
      {SYS_bind, "bind"},           {SYS_listen, "listen"},         {SYS_sendto, "sendto"},
      {SYS_recvfrom, "recvfrom"},   {SYS_sendmsg, "sendmsg"},       {SYS_recvmsg, "recvmsg"},
      {SYS_getsockopt, "getsockopt"}, {SYS_setsockopt, "setsockopt"}, {SYS_fcntl, "fcntl"},
      {SYS_ftruncate, "ftruncate"}, {SYS_fallocate, "fallocate"},   {SYS_memfd_create, "memfd_create"},
      {SYS_openat, "openat"},       {SYS_unlink, "unlink"},         {SYS_epoll_wait, "epoll_wait"},
      {SYS_epoll_ctl, "epoll_ctl"}, {SYS_futex, "futex"},           {SYS_getpid, "getpid"},
      {SYS_gettid, "gettid"},       {SYS_getrandom, "getrandom"},   {SYS_pidfd_open, "pidfd_open"},
      {SYS_clock_gettime, "clock_gettime"}, {SYS_clone, "clone"},   {SYS_clone3, "clone3"},
  };
  const auto found = names.find(number);
  return found != names.end() ? found->second : "call " + std::to_string(number);
}

std::string first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

bool sleeps(pid_t thread) {
  const std::string stat = first_line("/proc/" + std::to_string(thread) + "/stat");
  const auto after_name = stat.rfind(')');
  return after_name != std::string::npos && after_name + 2 < stat.size() && stat[after_name + 2] == 'S';
}

struct Call {
  std::uint64_t number = 0;
  std::uint64_t arguments[6] = {};
};

class Tracer {
 public:
  explicit Tracer(pid_t child) : child_(child) { threads_[child]; }

  CountedCalls run() {
    for (;;) {
      int status = 0;
      const pid_t thread = ::waitpid(-1, &status, __WALL | (waiting_ != 0 ? WNOHANG : 0));
      if (thread < 0) {
        if (errno == EINTR) continue;
        break;  // ECHILD: all have ended
      }
      if (thread > 0) {
        hear(thread, status);
      } else if (quiet()) {
        take_mark();
      } else {
        ::usleep(200);
      }
    }
    if (counting_) complain("the counted part never ended");
    if (marks_ == 0) complain("nothing was marked to be counted");
    return std::move(result_);
  }

 private:
  struct Thread {
    bool in_call = false;
  };

  void hear(pid_t thread, int status) {
    if (WIFEXITED(status) || WIFSIGNALED(status)) {
      threads_.erase(thread);
      if (thread == child_ && (!WIFEXITED(status) || WEXITSTATUS(status) != 0)) complain("the counted process failed");
      if (WIFSIGNALED(status) && thread != child_) complain("a counted process was killed");
      return;
    }
    Thread& known = threads_[thread];
    const int signal = WSTOPSIG(status);
    const int event = status >> 16;
    if (signal == (SIGTRAP | 0x80)) {
      Call call;
      known.in_call = read_entry(thread, &call);
      if (known.in_call && enter(thread, call)) return;  // held at its mark
      resume(thread, 0);
    } else {
      resume(thread, event != 0 ? 0 : signal);  // an event of ptrace's own, or a signal of the process's
    }
  }

  // True at the entry of a call, false at its exit.
  static bool read_entry(pid_t thread, Call* call) {
    __ptrace_syscall_info info;
    if (::ptrace(PTRACE_GET_SYSCALL_INFO, thread, sizeof(info), &info) <= 0) return false;
    if (info.op != PTRACE_SYSCALL_INFO_ENTRY) return false;
    call->number = info.entry.nr;
    std::copy(std::begin(info.entry.args), std::end(info.entry.args), call->arguments);
    return true;
  }

  // True when the thread is to stay where it is.
  bool enter(pid_t thread, const Call& call) {
    if (call.number == SYS_prctl && call.arguments[0] == mark) {
      if (waiting_ != 0) {
        complain("two threads mark at once");
        return false;
      }
      waiting_ = thread;
      kind_ = call.arguments[1];
      return true;
    }
    if (counting_ && !of_the_test(call)) {
      const std::string who = first_line("/proc/" + std::to_string(thread) + "/comm");
      ++result_.calls[who + ": " + name_of_call(call.number)];
    }
    return false;
  }

  static bool of_the_test(const Call& call) {
    switch (call.number) {
      case SYS_read:
      case SYS_write:
      case SYS_sendto:
      case SYS_recvfrom:
        return call.arguments[0] >= uncounted_descriptor && call.arguments[0] < 0x7fffffff;
      default:
        return false;
    }
  }

  // Whether all but the marking thread sleep inside a call. A thread that was woken is not asleep any more, whether or
  // not it has run.
  bool quiet() const {
    return std::all_of(threads_.begin(), threads_.end(), [this](const auto& entry) {
      return entry.first == waiting_ || (entry.second.in_call && sleeps(entry.first));
    });
  }

  void take_mark() {
    ++marks_;
    counting_ = kind_ == begins;
    resume(std::exchange(waiting_, 0), 0);
  }

  static void resume(pid_t thread, int signal) { ::ptrace(PTRACE_SYSCALL, thread, nullptr, signal); }

  void complain(const char* text) {
    if (result_.problem.empty()) result_.problem = text;
  }

  const pid_t child_;
  std::unordered_map<pid_t, Thread> threads_;
  bool counting_ = false;
  pid_t waiting_ = 0;  // the thread held at its mark
  std::uint64_t kind_ = 0;
  int marks_ = 0;
  CountedCalls result_;
};

void set_mark(unsigned long kind) { ::syscall(SYS_prctl, mark, kind, 0, 0, 0); }

}  // namespace

int as_uncounted(int descriptor) {
  const int moved = ::fcntl(descriptor, F_DUPFD_CLOEXEC, uncounted_descriptor);
  ::close(descriptor);
  return moved;
}

void begin_counting() { set_mark(begins); }
void end_counting() { set_mark(ends); }

long CountedCalls::total() const {
  long sum = 0;
  for (const auto& [name, count] : calls) sum += count;
  return sum;
}

long CountedCalls::named(const std::string& call) const {
  long sum = 0;
  for (const auto& [name, count] : calls) {
    if (name.substr(name.find(": ") + 2) == call) sum += count;
  }
  return sum;
}

std::string CountedCalls::in_words() const {
  std::ostringstream text;
  for (const auto& [name, count] : calls) text << name << " " << count << "\n";
  return text.str();
}

CountedCalls count_calls(const std::function<void()>& body) {
  int gate[2];
  if (::pipe2(gate, O_CLOEXEC) != 0) return {std::strerror(errno), {}};
  const pid_t child = ::fork();
  if (child < 0) return {std::strerror(errno), {}};
  if (child == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    ::close(gate[1]);
    char go = 0;
    if (::read(gate[0], &go, 1) == 1) body();
    ::_exit(0);
  }
  ::close(gate[0]);
  if (::ptrace(PTRACE_SEIZE, child, nullptr, options) != 0) {
    const std::string why = std::string("ptrace: ") + std::strerror(errno);
    ::close(gate[1]);
    ::waitpid(child, nullptr, 0);
    return {why, {}};
  }
  // Stopped once by force, so that the first resume turns the reports of calls on.
  ::ptrace(PTRACE_INTERRUPT, child, nullptr, nullptr);
  Tracer tracer(child);
  if (::write(gate[1], "g", 1) != 1) ::kill(child, SIGKILL);
  CountedCalls result = tracer.run();
  ::close(gate[1]);
  return result;
}

std::string why_no_counting() {
  if (under_sanitizer()) return "a sanitizer makes system calls of its own";
  const CountedCalls probe = count_calls([] {
    begin_counting();
    ::syscall(SYS_getpid);
    end_counting();
  });
  if (!probe.problem.empty()) return "system calls cannot be traced here (" + probe.problem + ")";
  return probe.total() == 1 ? "" : "the kernel reports other calls than were made:\n" + probe.in_words();
}

}  // namespace devshare::test
