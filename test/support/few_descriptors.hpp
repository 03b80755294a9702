// SPDX-License-Identifier: Apache-2.0
// A process in which hardly a descriptor is left.
#pragma once

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstddef>
#include <vector>

namespace devshare::test {

// While it exists, so many descriptors can be had and no more.
class FewDescriptors {
 public:
  explicit FewDescriptors(std::size_t left) {
    ::getrlimit(RLIMIT_NOFILE, &before_);
    rlimit limit = before_;
    limit.rlim_cur = 128;
    ::setrlimit(RLIMIT_NOFILE, &limit);
    for (int taken = open_one(); taken >= 0; taken = open_one()) taken_.push_back(taken);
    for (; left > 0 && !taken_.empty(); --left) {
      ::close(taken_.back());
      taken_.pop_back();
    }
  }
  ~FewDescriptors() {
    for (const int descriptor : taken_) ::close(descriptor);
    ::setrlimit(RLIMIT_NOFILE, &before_);
  }
  FewDescriptors(const FewDescriptors&) = delete;
  FewDescriptors& operator=(const FewDescriptors&) = delete;

 private:
  static int open_one() { return ::open("/dev/null", O_RDONLY | O_CLOEXEC); }
  rlimit before_{};
  std::vector<int> taken_;
};

}  // namespace devshare::test
