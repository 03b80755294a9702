// SPDX-License-Identifier: Apache-2.0
// Processes that see less: own namespaces, system calls that fail. Not every kernel allows them to every user: ask
// why_no_... first and skip the case with its answer.
#pragma once

#include <sys/types.h>

#include <string>

namespace devshare::test {

enum class Isolation : unsigned {
  none = 0,
  pid = 1,   // a pid namespace in which the process is number 1, with a /proc of its own
  net = 2,   // a network namespace: other abstract sockets, no interface up
  user = 4,  // a user namespace that maps this user to itself and nobody else
};
constexpr Isolation operator|(Isolation a, Isolation b) {
  return static_cast<Isolation>(static_cast<unsigned>(a) | static_cast<unsigned>(b));
}
constexpr bool has(Isolation set, Isolation part) {
  return (static_cast<unsigned>(set) & static_cast<unsigned>(part)) != 0;
}

// Empty when a process can be isolated so, else the reason in words.
std::string why_no(Isolation isolation);

// The same of root's own mounts, in a mount namespace, and a host's name of its own (CLONE_NEWNS, CLONE_NEWUTS). In a
// chroot nothing can be mounted for oneself alone.
std::string why_no_own_mounts();

// Puts the calling process (its future children, for pid) into namespaces of its own: 0, or -1 with `error` set. With
// pid, the first child must then call finish_isolation_in_child.
int isolate(Isolation isolation, std::string* error);
int finish_isolation_in_child(Isolation isolation, std::string* error);

// A number that no process has now and none gets by itself soon, for fork_as.
pid_t unused_pid();
// A child that has this number; -1 where the kernel refuses. It runs no fork handlers: for a process without a runtime.
pid_t fork_as(pid_t number);
std::string why_no_fork_as();

// From now on a system call of this process fails with that errno, for ever: call it in a child.
int refuse_system_call(long number, int with_errno);
// The same for memfd_create, where it is asked for all of `flags`; 0: always.
int refuse_memfd_create(int with_errno, unsigned flags = 0);
std::string why_no_refused_system_calls();

}  // namespace devshare::test
