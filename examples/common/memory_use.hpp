// SPDX-License-Identifier: Apache-2.0
// What memory this process spends, by the kernel's own books. Not counted: page tables, socket buffers, page cache of
// files that have a name.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <utility>

namespace examples {

// Bytes that nobody else has: the Private_* lines of /proc/self/smaps, over private mappings only. Shared mappings are
// left out because a page of theirs that just one process has touched is called Private as well, though it is one of
// the blocks that shared_block_bytes() counts: /proc/self/smaps_rollup would count it twice.
inline std::uint64_t private_bytes() {
  std::uint64_t total = 0;
  bool shared = false;
  std::ifstream maps("/proc/self/smaps");
  for (std::string line; std::getline(maps, line);) {
    char permissions[5] = {};
    unsigned long long kib = 0;
    if (std::sscanf(line.c_str(), "%*x-%*x %4s", permissions) == 1) {
      shared = permissions[3] == 's';
    } else if (!shared && (std::sscanf(line.c_str(), "Private_Clean: %llu kB", &kib) == 1 ||
                           std::sscanf(line.c_str(), "Private_Dirty: %llu kB", &kib) == 1)) {
      total += kib * 1024;
    }
  }
  return total;
}

// Bytes in the blocks of every file without a name that this process holds open, each file once. Such are the host
// runtime's memfds: one for each allocation of device memory, and its small control page.
inline std::uint64_t shared_block_bytes() {
  std::uint64_t total = 0;
  std::set<std::pair<dev_t, ino_t>> counted;
  for (const auto& descriptor : std::filesystem::directory_iterator("/proc/self/fd")) {
    struct stat file {};
    if (stat(descriptor.path().c_str(), &file) != 0 || !S_ISREG(file.st_mode) || file.st_nlink != 0) continue;
    if (counted.emplace(file.st_dev, file.st_ino).second) total += static_cast<std::uint64_t>(file.st_blocks) * 512;
  }
  return total;
}

}  // namespace examples
