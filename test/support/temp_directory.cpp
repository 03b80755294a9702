// SPDX-License-Identifier: Apache-2.0
#include "temp_directory.hpp"

#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <system_error>

namespace devshare::test {

TempDirectory::TempDirectory(std::string_view purpose) : owner_(::getpid()) {
  const char* base = std::getenv("TMPDIR");
  path_ = std::string(base != nullptr && *base != '\0' ? base : "/tmp") + "/ds-" + std::string(purpose) + "-XXXXXX";
  if (::mkdtemp(path_.data()) == nullptr) {
    std::cerr << "no temporary directory " << path_ << ": " << std::generic_category().message(errno) << "\n";
    std::abort();  // nothing can be tested without one
  }
}

TempDirectory::~TempDirectory() {
  if (owner_ != ::getpid()) return;
  std::error_code ignored;  // something a test left unreadable stays: not worth failing it in a destructor
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace devshare::test
