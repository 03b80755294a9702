// SPDX-License-Identifier: Apache-2.0
#include "endpoint.hpp"

#include "lifecycle.hpp"
#include "random.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string_view>
#include <thread>

namespace devshare::host {
namespace {

constexpr std::string_view name_prefix = "devshare.";
constexpr int backlog = 4096;  // cut by the kernel to net.core.somaxconn
constexpr int most_names_tried = 8;

struct Address {
  sockaddr_un bytes{};
  socklen_t length = 0;
};

std::array<char, 32> spell(std::uint64_t name) noexcept {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "devshare.%016llx", static_cast<unsigned long long>(name));
  return text;
}

Address abstract_address(std::uint64_t name) noexcept {
  Address address;
  address.bytes.sun_family = AF_UNIX;
  const auto text = spell(name);
  const std::size_t length = std::strlen(text.data());
  std::memcpy(address.bytes.sun_path + 1, text.data(), length);
  address.length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + length);
  return address;
}

bool path_address(const std::string& path, Address* out) noexcept {
  if (path.size() >= sizeof out->bytes.sun_path) return false;
  out->bytes.sun_family = AF_UNIX;
  std::memcpy(out->bytes.sun_path, path.c_str(), path.size() + 1);
  out->length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + path.size() + 1);
  return true;
}

std::string path_in(const std::string& directory, std::uint64_t name) { return directory + '/' + spell(name).data(); }

const sockaddr* plain(const Address& address) noexcept { return reinterpret_cast<const sockaddr*>(&address.bytes); }

// The directory, made if it is missing. Anybody else's, or one that others may enter, is never used (B072).
UniqueFd open_directory(const std::string& directory) noexcept {
  if (::mkdir(directory.c_str(), 0700) != 0 && errno != EEXIST) return UniqueFd();
  UniqueFd opened(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  struct stat status {};
  if (!opened || ::fstat(opened.get(), &status) != 0) return UniqueFd();
  if (status.st_uid != ::geteuid() || (status.st_mode & 077) != 0) {
    errno = EACCES;
    return UniqueFd();
  }
  return opened;
}

// Unlinks the sockets in a directory at which nobody listens. The caller holds the directory's lock, so that none of
// them is one that was bound and does not listen yet.
void reclaim_stale(const UniqueFd& directory, const std::string& path) {
  UniqueFd copy(::fcntl(directory.get(), F_DUPFD_CLOEXEC, 0));
  DIR* listing = copy ? ::fdopendir(copy.get()) : nullptr;
  if (listing == nullptr) return;
  static_cast<void>(copy.release());  // the listing's now
  ::rewinddir(listing);
  while (const dirent* entry = ::readdir(listing)) {
    const std::string_view name = entry->d_name;
    struct stat status {};
    if (!name.starts_with(name_prefix) ||
        ::fstatat(::dirfd(listing), entry->d_name, &status, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISSOCK(status.st_mode) ||
        status.st_uid != ::geteuid()) {
      continue;
    }
    Address address;
    const UniqueFd probe(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!probe || !path_address(path + '/' + entry->d_name, &address)) continue;
    if (::connect(probe.get(), plain(address), address.length) != 0 && errno == ECONNREFUSED) {
      ::unlinkat(::dirfd(listing), entry->d_name, 0);
    }
  }
  ::closedir(listing);
}

// A shared lock of a directory while a socket is bound and does not listen yet; an exclusive one while stale sockets
// are looked for. Neither is worth waiting for a stopped process.
bool lock_directory(const UniqueFd& directory, int kind) noexcept {
  constexpr auto pause = std::chrono::milliseconds(1);
  for (int tries = kind == LOCK_EX ? 1 : 200; tries > 0; --tries) {
    if (::flock(directory.get(), kind | LOCK_NB) == 0) return true;
    if (tries > 1) std::this_thread::sleep_for(pause);
  }
  return false;
}

// What must be unlinked when the process exits without having finalised.
struct PathToUnlink {
  std::mutex mutex;
  std::uint32_t process = 0;
  std::array<char, sizeof(sockaddr_un::sun_path)> path{};
};
PathToUnlink& path_to_unlink() {
  static auto* immortal = new PathToUnlink;
  return *immortal;
}

void unlink_at_exit(const std::string& path) {
  PathToUnlink& duty = path_to_unlink();
  const std::scoped_lock lock(duty.mutex);
  static bool registered = false;
  if (!registered) {
    registered = std::atexit([] {
                   const PathToUnlink& left = path_to_unlink();
                   if (left.path[0] != '\0' && left.process == process_generation()) ::unlink(left.path.data());
                 }) == 0;
  }
  duty.process = process_generation();
  duty.path = {};
  path.copy(duty.path.data(), duty.path.size() - 1);
}

}  // namespace

int Endpoint::open(const std::string& directory) {
  int error = EADDRINUSE;
  for (int tries = 0; tries < most_names_tried && error == EADDRINUSE; ++tries) {
    const std::uint64_t name = random_number() >> (64 - endpoint_bits);
    if (name == 0) continue;  // so that no token is 0
    error = directory.empty() ? open_abstract(name) : open_path(directory, name);
    if (error == 0) name_ = name;
  }
  return error;
}

int Endpoint::open_abstract(std::uint64_t name) {
  UniqueFd listener(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!listener) return errno;
  const Address address = abstract_address(name);
  if (::bind(listener.get(), plain(address), address.length) != 0) return errno;
  if (::listen(listener.get(), backlog) != 0) return errno;
  socket_ = std::move(listener);
  return 0;
}

int Endpoint::open_path(const std::string& directory, std::uint64_t name) {
  const std::string path = path_in(directory, name);
  Address address;
  if (!path_address(path, &address)) return ENAMETOOLONG;
  const UniqueFd place = open_directory(directory);
  if (!place) return errno;
  if (lock_directory(place, LOCK_EX)) reclaim_stale(place, directory);

  UniqueFd listener(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!listener) return errno;
  if (::fchmod(listener.get(), 0600) != 0) return errno;  // the mode that bind gives the name
  static_cast<void>(lock_directory(place, LOCK_SH));      // turns an exclusive lock into a shared one
  if (::bind(listener.get(), plain(address), address.length) != 0) return errno;
  if (::listen(listener.get(), backlog) != 0) {
    const int error = errno;
    ::unlink(path.c_str());
    return error;
  }
  unlink_at_exit(path);
  socket_ = std::move(listener);
  path_ = path;
  return 0;
}

void Endpoint::close() noexcept {
  socket_ = UniqueFd();
  if (path_.empty()) return;
  PathToUnlink& duty = path_to_unlink();
  const std::scoped_lock lock(duty.mutex);
  ::unlink(path_.c_str());
  duty.path = {};
  path_.clear();
}

UniqueFd new_client_socket(std::uint32_t time_limit_ms) noexcept {
  UniqueFd socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  if (!socket) return socket;
  timeval limit{};
  limit.tv_sec = time_limit_ms / 1000;
  limit.tv_usec = static_cast<suseconds_t>(time_limit_ms % 1000) * 1000;
  if (time_limit_ms == 0) limit.tv_usec = 1;  // to the kernel zero is for ever
  ::setsockopt(socket.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  ::setsockopt(socket.get(), SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
  return socket;
}

int connect_to(int socket, std::uint64_t name, const std::string& directory,
               std::chrono::steady_clock::time_point deadline) noexcept {
  Address address;
  if (directory.empty()) {
    address = abstract_address(name);
  } else if (!path_address(path_in(directory, name), &address)) {
    return ENAMETOOLONG;
  }
  while (::connect(socket, plain(address), address.length) != 0) {
    if (errno != EINTR) return errno;
    if (std::chrono::steady_clock::now() >= deadline) return EAGAIN;
  }
  return 0;
}

}  // namespace devshare::host
