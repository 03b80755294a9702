// SPDX-License-Identifier: Apache-2.0
#include "descriptors.hpp"

#include <dirent.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

namespace devshare::test {

std::vector<std::string> open_descriptors() {
  std::vector<std::string> all;
  DIR* directory = ::opendir("/proc/self/fd");
  if (directory == nullptr) std::abort();
  const std::string own = std::to_string(::dirfd(directory));
  while (const dirent* entry = ::readdir(directory)) {
    const std::string number = entry->d_name;
    if (number == "." || number == ".." || number == own) continue;
    char target[512];
    const ssize_t size = ::readlinkat(::dirfd(directory), entry->d_name, target, sizeof(target));
    all.push_back(number + " " + std::string(target, size > 0 ? static_cast<std::size_t>(size) : 0));
  }
  ::closedir(directory);
  std::sort(all.begin(), all.end());
  return all;
}

std::size_t count_descriptors() { return open_descriptors().size(); }

}  // namespace devshare::test
