// SPDX-License-Identifier: Apache-2.0
// Huge pages of the machine for a test: set aside when it asks, given back when it ends, however it ends.
//
// The pool is the whole machine's, so those who use it take turns: while an object of this lives, another one, in
// whatever test program, waits to be made. The counts are exact as long as nobody but tests uses huge pages.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <string>

namespace devshare::test {

class HugePages {
 public:
  // So many are free from now on, whatever there was before.
  explicit HugePages(std::size_t pages);
  ~HugePages();
  HugePages(const HugePages&) = delete;
  HugePages& operator=(const HugePages&) = delete;

  // Empty when there are as many as asked for; else why not, for DEVSHARE_SKIP.
  const std::string& why_not() const noexcept { return why_not_; }

  // That a process can get: neither in use nor promised to one.
  static std::size_t free_pages();

  static constexpr std::size_t bytes = std::size_t{2} << 20;  // of a page

 private:
  std::string set_aside(std::size_t pages);

  int lock_ = -1;
  int alive_ = -1;     // the keeper sees it close
  pid_t keeper_ = -1;  // puts the pool back as it was, also when this process is killed
  std::size_t before_ = 0;
  std::string why_not_;
};

}  // namespace devshare::test
