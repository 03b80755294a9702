// SPDX-License-Identifier: Apache-2.0
#include "process_identity.hpp"

#include "locks.hpp"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

namespace devshare::detail {
namespace {

// Reads a small file whole; 0 when it cannot, with errno.
std::size_t read_file(const char* path, char* buffer, std::size_t room) noexcept {
  const int fd = ::open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return 0;
  const ssize_t got = ::read(fd, buffer, room - 1);
  ::close(fd);
  if (got <= 0) return 0;
  buffer[got] = '\0';
  return static_cast<std::size_t>(got);
}

// Field 22 of /proc/PID/stat. The name in field 2 may hold spaces and brackets, so counting starts at its last bracket.
std::uint64_t start_time_of(const char* stat) noexcept {
  const char* field = std::strrchr(stat, ')');
  if (field == nullptr) return 0;
  for (int number = 2; number < 22; ++number) {
    field = std::strchr(field + 1, ' ');
    if (field == nullptr) return 0;
  }
  return std::strtoull(field + 1, nullptr, 10);
}

std::array<std::byte, 16> read_boot_id() noexcept {
  std::array<std::byte, 16> id{};
  char text[64];
  if (read_file("/proc/sys/kernel/random/boot_id", text, sizeof text) == 0) return id;
  std::size_t nibbles = 0;
  for (const char* c = text; *c != '\0' && nibbles < 32; ++c) {
    unsigned value = 0;
    if (*c >= '0' && *c <= '9') {
      value = static_cast<unsigned>(*c - '0');
    } else if (*c >= 'a' && *c <= 'f') {
      value = static_cast<unsigned>(*c - 'a') + 10;
    } else {
      continue;
    }
    id[nibbles / 2] |= static_cast<std::byte>(nibbles % 2 == 0 ? value << 4 : value);
    ++nibbles;
  }
  return id;
}

bool descriptors_are_out() noexcept { return errno == EMFILE || errno == ENFILE; }

// `whole` is false where a descriptor was missing to read all of it: that may pass.
ExporterIdentity read_own_identity(bool& whole) noexcept {
  ExporterIdentity identity;
  errno = 0;
  identity.boot_id = read_boot_id();
  whole = !descriptors_are_out();
  identity.pid = ::getpid();
  struct stat status {};
  if (::stat("/proc/self/ns/pid", &status) == 0) identity.pid_namespace = status.st_ino;
  char text[1024];
  if (read_file("/proc/self/stat", text, sizeof text) != 0) {
    identity.start_time = start_time_of(text);
  } else if (descriptors_are_out()) {
    whole = false;
  }
  return identity;
}

struct Cached {
  bool known = false;
  ExporterIdentity identity;
  std::uint64_t seed = 0;
  std::uint64_t count = 0;
};

constinit Cached cache;  // trivial to destroy; guarded by Lock::identity

void refresh() noexcept {
  if (cache.known) return;
  bool whole = true;
  cache.identity = read_own_identity(whole);
  if (::getrandom(&cache.seed, sizeof cache.seed, 0) != static_cast<ssize_t>(sizeof cache.seed)) {
    // No random source: pid and start time still tell processes apart.
    cache.seed = (static_cast<std::uint64_t>(cache.identity.pid) << 40) ^ cache.identity.start_time;
  }
  cache.known = whole;  // what is not whole must not last: others would know this process by half a name
}

}  // namespace

void identity_after_fork_in_child() noexcept { cache.known = false; }

Result<ExporterIdentity> own_identity(Operation operation) noexcept {
  {
    const std::lock_guard lock(mutex_of(Lock::identity));
    refresh();
    if (cache.known) return cache.identity;
  }
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  return Error(Errc::fd_limit, operation,
               {.system_errno = EMFILE, .needed = limit.rlim_cur, .available = limit.rlim_cur});
}

Alive process_alive(const ExporterIdentity& identity) noexcept {
  const auto self = own_identity(Operation::use_import);
  if (!self) return Alive::unknown;
  if (identity.boot_id != self->boot_id) return Alive::no;
  if (identity.pid_namespace != self->pid_namespace) return Alive::unknown;
  char path[64];
  std::snprintf(path, sizeof path, "/proc/%d/stat", identity.pid);
  char text[1024];
  errno = 0;
  if (read_file(path, text, sizeof text) == 0) return descriptors_are_out() ? Alive::unknown : Alive::no;
  if (start_time_of(text) != identity.start_time) return Alive::no;
  const char* const state = std::strrchr(text, ')');
  return state != nullptr && (state[2] == 'Z' || state[2] == 'X') ? Alive::no : Alive::yes;
}

std::array<std::byte, 16> new_nonce() noexcept {
  std::uint64_t words[2];
  {
    const std::lock_guard lock(mutex_of(Lock::identity));
    refresh();
    words[0] = cache.seed;
    words[1] = cache.count++;
  }
  std::array<std::byte, 16> nonce;
  std::memcpy(nonce.data(), words, sizeof words);
  return nonce;
}

}  // namespace devshare::detail
