// SPDX-License-Identifier: Apache-2.0
#include "isolation.hpp"

#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <system_error>
#include <vector>

#include "forks.hpp"
#include "sanitizers.hpp"

namespace devshare::test {
namespace {

std::string words(const char* what, int error) {
  return std::string(what) + ": " + std::generic_category().message(error);
}

int write_file(const char* path, const std::string& text) {
  const int fd = ::open(path, O_WRONLY | O_CLOEXEC);
  if (fd < 0) return -1;
  const bool whole = ::write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  ::close(fd);
  return whole ? 0 : -1;
}

// Runs `trial` in a child that may do to itself what it likes; the text it returns comes back.
std::string in_a_child(const std::function<std::string()>& trial) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return words("pipe", errno);
  const pid_t child = ::fork();
  if (child < 0) return words("fork", errno);
  if (child == 0) {
    const std::string text = trial();
    const ssize_t written = ::write(ends[1], text.data(), text.size());
    ::_exit(written == static_cast<ssize_t>(text.size()) ? 0 : 1);
  }
  ::close(ends[1]);
  std::string text;
  char buffer[256];
  for (ssize_t n = 0; (n = ::read(ends[0], buffer, sizeof(buffer))) > 0;) text.append(buffer, static_cast<std::size_t>(n));
  ::close(ends[0]);
  int status = 0;
  ::waitpid(child, &status, 0);
  if (text.empty() && status != 0) return "the trial of it ended with status " + std::to_string(status);
  return text;
}

}  // namespace

int isolate(Isolation isolation, std::string* error) {
  int flags = 0;
  if (has(isolation, Isolation::pid)) flags |= CLONE_NEWPID | CLONE_NEWNS;
  if (has(isolation, Isolation::net)) flags |= CLONE_NEWNET;
  if (has(isolation, Isolation::user)) flags |= CLONE_NEWUSER;
  const std::string uid = std::to_string(::geteuid());
  const std::string gid = std::to_string(::getegid());
  if (::unshare(flags) != 0) {
    *error = words("the kernel gives no new namespaces", errno);
    return -1;
  }
  if (has(isolation, Isolation::user)) {
    const bool mapped = write_file("/proc/self/setgroups", "deny") == 0 &&
                        write_file("/proc/self/uid_map", uid + " " + uid + " 1") == 0 &&
                        write_file("/proc/self/gid_map", gid + " " + gid + " 1") == 0;
    if (!mapped) {
      *error = words("the user namespace takes no mapping", errno);
      return -1;
    }
  }
  return 0;
}

int finish_isolation_in_child(Isolation isolation, std::string* error) {
  if (!has(isolation, Isolation::pid)) return 0;
  if (::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
      ::mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, nullptr) != 0) {
    *error = words("a new pid namespace gets no /proc", errno);
    return -1;
  }
  return 0;
}

std::string why_no(Isolation isolation) {
  return in_a_child([isolation]() -> std::string {
    std::string error;
    if (isolate(isolation, &error) != 0) return error;
    return in_a_child([isolation]() -> std::string {
      std::string inner;
      finish_isolation_in_child(isolation, &inner);
      return inner;
    });
  });
}

std::string why_no_own_mounts() {
  return in_a_child([]() -> std::string {
    if (::unshare(CLONE_NEWNS | CLONE_NEWUTS) != 0) return words("the kernel gives no new namespaces", errno);
    if (::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return words("no mounts of one's own", errno);
    return {};
  });
}

std::string why_no_fork_as() {
  if (sees_races()) return "ThreadSanitizer follows no raw clone";
  const pid_t child = fork_as(unused_pid());
  if (child < 0) return words("the number of a new process cannot be chosen", errno);
  if (child == 0) ::_exit(0);
  ::waitpid(child, nullptr, 0);
  return {};
}

pid_t unused_pid() {
  int last = 0;
  int limit = 32768;
  std::ifstream("/proc/sys/kernel/ns_last_pid") >> last;
  std::ifstream("/proc/sys/kernel/pid_max") >> limit;
  constexpr int reserved = 300;  // the kernel does not hand these out after the first round
  const int range = limit - reserved;
  // Far from what is handed out next, and not where another test looks at the same time.
  const int start = (last + range / 2 + ::getpid() % (range / 4)) % range;
  for (int tried = 0; tried < range; ++tried) {
    const int candidate = reserved + (start + tried) % range;
    if (::kill(candidate, 0) != 0 && errno == ESRCH) return candidate;
  }
  return 0;
}

// The kernel takes exactly this number or refuses; the counter that others get theirs from stays where it is. The
// thread's own record of its number, which fork() would renew, lies where the C library told the kernel.
pid_t fork_as(pid_t number) {
  std::uint64_t own_record = 0;
  if (::prctl(PR_GET_TID_ADDRESS, &own_record) != 0) return -1;
  clone_args arguments{};
  arguments.flags = CLONE_CHILD_SETTID | CLONE_CHILD_CLEARTID;
  arguments.child_tid = own_record;
  arguments.exit_signal = SIGCHLD;
  arguments.set_tid = reinterpret_cast<std::uintptr_t>(&number);
  arguments.set_tid_size = 1;
  let_threads_rest();
  return static_cast<pid_t>(::syscall(SYS_clone3, &arguments, sizeof(arguments)));
}

namespace {

template <std::size_t length>
int install(sock_filter (&filter)[length]) {
  sock_fprog program{length, filter};
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return -1;
  return ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

}  // namespace

int refuse_system_call(long number, int with_errno) {
  sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<std::uint32_t>(number), 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (static_cast<std::uint32_t>(with_errno) & SECCOMP_RET_DATA)),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  return install(filter);
}

int refuse_memfd_create(int with_errno, unsigned flags) {
  sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_memfd_create, 0, 4),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args[1])),
      BPF_STMT(BPF_ALU | BPF_AND | BPF_K, flags),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, flags, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (static_cast<std::uint32_t>(with_errno) & SECCOMP_RET_DATA)),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  return install(filter);
}

std::string why_no_refused_system_calls() {
  return in_a_child([]() -> std::string {
    if (refuse_system_call(-2, EPERM) == 0) return {};
    return words("the kernel takes no system call filter", errno);
  });
}

}  // namespace devshare::test
