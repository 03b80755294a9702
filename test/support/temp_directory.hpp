// SPDX-License-Identifier: Apache-2.0
// A fresh directory for one test, 0700, removed with everything in it at the end of the scope by the process that
// made it (a forked child leaves it alone).
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>

namespace devshare::test {

class TempDirectory {
 public:
  // `purpose` becomes part of the name. Paths are short: a Unix socket's name must fit 107 bytes.
  explicit TempDirectory(std::string_view purpose = "test");
  ~TempDirectory();
  TempDirectory(const TempDirectory&) = delete;
  TempDirectory& operator=(const TempDirectory&) = delete;

  const std::string& path() const noexcept { return path_; }
  std::string file(std::string_view name) const { return path_ + "/" + std::string(name); }

 private:
  std::string path_;
  pid_t owner_;
};

}  // namespace devshare::test
