// SPDX-License-Identifier: Apache-2.0
// How often a process was scheduled.
#pragma once

#include <filesystem>
#include <fstream>
#include <string>

#include <fmt/format.h>
#include <sys/types.h>

namespace devshare::test {

// Of all threads of a process since it began.
struct Scheduled {
  long switches = 0;
  std::size_t threads = 0;
};

inline Scheduled scheduled(pid_t pid) {
  Scheduled sum;
  for (const auto& task : std::filesystem::directory_iterator(fmt::format("/proc/{}/task", pid))) {
    std::ifstream status(task.path() / "status");
    for (std::string word; status >> word;) {
      if (word != "voluntary_ctxt_switches:" && word != "nonvoluntary_ctxt_switches:") continue;
      long count = 0;
      status >> count;
      sum.switches += count;
    }
    ++sum.threads;
  }
  return sum;
}

}  // namespace devshare::test
