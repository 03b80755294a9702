// SPDX-License-Identifier: Apache-2.0
#include "forks.hpp"

#include "sanitizers.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace devshare::test {
namespace {

// proc_pid_stat(5): the state stands behind the name, which may itself contain brackets.
bool sleeps(const char* thread) {
  char path[64];
  std::snprintf(path, sizeof(path), "/proc/self/task/%s/stat", thread);
  const int stat = ::open(path, O_RDONLY | O_CLOEXEC);
  if (stat < 0) return true;  // it has ended
  char text[128] = {};
  const ssize_t size = ::read(stat, text, sizeof(text) - 1);
  ::close(stat);
  if (size <= 0) return true;
  const char* const name_end = std::strrchr(text, ')');
  return name_end != nullptr && std::strncmp(name_end, ") S", 3) == 0;
}

bool others_sleep() {
  DIR* const threads = ::opendir("/proc/self/task");
  if (threads == nullptr) return true;  // no descriptor left, or no /proc: the fork is as it would have been
  const long own = ::gettid();
  bool all = true;
  while (const dirent* const thread = ::readdir(threads)) {
    if (thread->d_name[0] != '.' && std::strtol(thread->d_name, nullptr, 10) != own)
      all = all && sleeps(thread->d_name);
  }
  ::closedir(threads);
  return all;
}

}  // namespace

void let_threads_rest() {
  if (!sees_leaks()) return;
  for (int tries = 0; tries < 100 && !others_sleep(); ++tries) ::usleep(1000);
}

void let_threads_rest_at_forks() {
  if (sees_leaks() && ::pthread_atfork(&let_threads_rest, nullptr, nullptr) != 0) std::abort();
}

}  // namespace devshare::test
