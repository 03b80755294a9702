// SPDX-License-Identifier: Apache-2.0
#include "huge_pages.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <system_error>

namespace devshare::test {
namespace {

constexpr const char* pool = "/sys/kernel/mm/hugepages/hugepages-2048kB/";
constexpr const char* size_of_pool = "/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages";
constexpr const char* turns = "/tmp/devshare-huge-pages.lock";

std::size_t count_of(const char* name) {
  const int file = ::open((std::string(pool) + name).c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return 0;
  char text[32] = {};
  const ssize_t length = ::read(file, text, sizeof text - 1);
  ::close(file);
  return length > 0 ? std::stoul(text) : 0;
}

// Calls the kernel and nothing else: the keeper has only one of its parent's threads.
bool resize(const char* number) {
  const int file = ::open(size_of_pool, O_WRONLY | O_CLOEXEC);
  if (file < 0) return false;
  const auto length = static_cast<ssize_t>(std::strlen(number));
  const bool done = ::write(file, number, static_cast<std::size_t>(length)) == length;
  const int error = errno;
  ::close(file);
  errno = error;
  return done;
}

bool resize(std::size_t pages) { return resize(std::to_string(pages).c_str()); }

[[noreturn]] void keep(int alive, int lock, const char* before) {
  // Nothing else of the parent's stays open here: it may be about to look at what is.
  const auto low = static_cast<unsigned>(std::min(alive, lock));
  const auto high = static_cast<unsigned>(std::max(alive, lock));
  if (low > 0) ::syscall(SYS_close_range, 0U, low - 1, 0U);
  if (high > low + 1) ::syscall(SYS_close_range, low + 1, high - 1, 0U);
  ::syscall(SYS_close_range, high + 1, ~0U, 0U);
  ::setsid();  // what is sent to all of a terminal's or a timeout's processes is not for this one
  char byte = 0;
  while (::read(alive, &byte, 1) < 0 && errno == EINTR) {
  }
  (void)resize(before);
  ::_exit(0);
}

std::string words(const char* what) { return std::string(what) + ": " + std::generic_category().message(errno); }

}  // namespace

HugePages::HugePages(std::size_t pages) { why_not_ = set_aside(pages); }

std::string HugePages::set_aside(std::size_t pages) {
  // First, so that whoever may not leaves no file that root then may not open (fs.protected_regular).
  if (::access(size_of_pool, W_OK) != 0) return words("huge pages cannot be set aside here");
  lock_ = ::open(turns, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (lock_ < 0) return words("tests cannot take turns with the machine's huge pages");
  while (::flock(lock_, LOCK_EX) != 0 && errno == EINTR) {
  }
  before_ = count_of("nr_hugepages");
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return words("pipe");
  const std::string before = std::to_string(before_);
  keeper_ = ::fork();
  if (keeper_ == 0) keep(ends[0], lock_, before.c_str());
  ::close(ends[0]);
  alive_ = ends[1];
  if (keeper_ < 0) return words("fork");
  const std::size_t in_use = before_ - free_pages();
  if (!resize(in_use + pages)) return words("huge pages cannot be set aside here");
  if (free_pages() == pages) return {};
  return "the machine sets aside " + std::to_string(free_pages()) + " huge pages of " + std::to_string(pages);
}

HugePages::~HugePages() {
  if (keeper_ > 0) {
    (void)resize(before_);
    ::kill(keeper_, SIGKILL);
    ::waitpid(keeper_, nullptr, 0);
    ::close(alive_);
  }
  if (lock_ >= 0) ::close(lock_);
}

std::size_t HugePages::free_pages() {
  const std::size_t promised = count_of("resv_hugepages");
  const std::size_t free = count_of("free_hugepages");
  return free > promised ? free - promised : 0;
}

}  // namespace devshare::test
