// SPDX-License-Identifier: Apache-2.0
#include "process.hpp"

#include <sched.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

namespace devshare::bench {

void Line::send_bytes(const void* bytes, std::size_t size) const {
  if (::send(socket_, bytes, size, MSG_NOSIGNAL) != static_cast<ssize_t>(size)) give_up("the other process is gone");
}

void Line::receive_bytes(void* bytes, std::size_t size) const {
  const ssize_t received = ::recv(socket_, bytes, size, 0);
  if (received == 0) give_up("the other process is gone");
  if (received != static_cast<ssize_t>(size)) give_up("a message of another length");
}

Process::Process(const std::function<void(const Line&)>& body) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) give_up("socketpair");
  pid_ = ::fork();
  if (pid_ < 0) give_up("fork");
  if (pid_ == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    ::close(ends[0]);
    body(Line(ends[1]));
    ::_exit(0);
  }
  ::close(ends[1]);
  line_ = Line(ends[0]);
}

Process::~Process() {
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
}

void pin_to(int processor) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(processor, &set);
  if (::sched_setaffinity(0, sizeof(set), &set) != 0) give_up("pinning to a processor");
}

}  // namespace devshare::bench
