// SPDX-License-Identifier: Apache-2.0
#include "fork.hpp"

#include "lifecycle.hpp"

#include <pthread.h>

#include <iterator>

namespace devshare::host {
namespace {

struct Module {
  void (*before)();
  void (*in_parent)();
  void (*in_child)();
};

// The lock order of the whole host runtime.
constexpr Module modules[] = {
#define DEVSHARE_HOST_FORK_ROW(name) \
  { name##_before_fork, name##_after_fork_in_parent, name##_after_fork_in_child }
    DEVSHARE_HOST_FORK_ROW(lifecycle),     DEVSHARE_HOST_FORK_ROW(devices),       DEVSHARE_HOST_FORK_ROW(reservations),
    DEVSHARE_HOST_FORK_ROW(registrations), DEVSHARE_HOST_FORK_ROW(blocks),        DEVSHARE_HOST_FORK_ROW(exports),
    DEVSHARE_HOST_FORK_ROW(imports),       DEVSHARE_HOST_FORK_ROW(token_imports), DEVSHARE_HOST_FORK_ROW(client),
    DEVSHARE_HOST_FORK_ROW(server),        DEVSHARE_HOST_FORK_ROW(handles),       DEVSHARE_HOST_FORK_ROW(ledger),
    DEVSHARE_HOST_FORK_ROW(streams),       DEVSHARE_HOST_FORK_ROW(instrument),    DEVSHARE_HOST_FORK_ROW(failure),
#undef DEVSHARE_HOST_FORK_ROW
};

void before_fork() {
  for (const Module& module : modules) module.before();
}

void in_parent() {
  for (auto module = std::rbegin(modules); module != std::rend(modules); ++module) module->in_parent();
}

// Lifecycle first here too: from then on this is another process to every module that asks.
void in_child() {
  for (const Module& module : modules) module.in_child();
}

}  // namespace

void install_fork_handlers() {
  static const int installed = ::pthread_atfork(before_fork, in_parent, in_child);
  static_cast<void>(installed);
}

}  // namespace devshare::host
