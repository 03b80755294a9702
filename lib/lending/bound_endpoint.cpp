// SPDX-License-Identifier: Apache-2.0
#include "bound_endpoint.hpp"

#include <cerrno>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

namespace devshare::detail {
namespace {

constexpr Operation operation = Operation::open_lender;
constexpr int backlog = 4096;  // as many as may wait for the lender to look; the kernel may allow fewer

Error failed(int system_errno) noexcept {
  // Of a lender's own names: a missing directory is no missing lender.
  if (system_errno == ENOENT) return Error(Errc::invalid_argument, operation, {.system_errno = ENOENT});
  return socket_error(operation, system_errno);
}

Error in_use() noexcept { return Error(Errc::endpoint_in_use, operation); }

// A directory, a link, a socket or a device: no lock of a lender.
bool another_lies_there(int system_errno) noexcept {
  return system_errno == EISDIR || system_errno == ELOOP || system_errno == ENXIO || system_errno == ENODEV;
}

// Whether two names are one file.
bool same_file(const struct stat& a, const struct stat& b) noexcept { return a.st_dev == b.st_dev && a.st_ino == b.st_ino; }

// Locks `name` in a directory, making it: who has the lock may remove the socket beside it. The file is removed by
// whoever holds it, so what was locked must still be what the name means.
Result<UniqueFd> lock_file(int directory, const std::string& name, mode_t mode) noexcept {
  for (;;) {
    UniqueFd lock(::openat(directory, name.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK, mode));
    if (!lock) return another_lies_there(errno) ? in_use() : failed(errno);
    if (::flock(lock.get(), LOCK_EX | LOCK_NB) != 0) {
      return Error(errno == EWOULDBLOCK ? Errc::endpoint_in_use : Errc::backend_unavailable, operation, {.system_errno = errno});
    }
    struct stat locked {};
    struct stat named {};
    if (::fstat(lock.get(), &locked) == 0 && ::fstatat(directory, name.c_str(), &named, AT_SYMLINK_NOFOLLOW) == 0 &&
        same_file(locked, named)) {
      // A lender's lock is an empty file; what is none is not ours to remove.
      if (!S_ISREG(locked.st_mode) || locked.st_size != 0) return in_use();
      return lock;
    }
  }
}

// Somebody listens there: another program, since a lender would have had the lock.
Result<bool> somebody_listens(const Address& address) noexcept {
  DEVSHARE_TRY(probe, new_socket(operation));
  return ::connect(probe.get(), reinterpret_cast<const sockaddr*>(&address.name), address.size) == 0 ||
         errno != ECONNREFUSED;
}

}  // namespace

Result<BoundEndpoint> BoundEndpoint::bind(const Endpoint& endpoint, bool for_all_users) noexcept {
  if (!endpoint.usable()) return Error(Errc::invalid_argument, operation);
  if (endpoint.kind() == Endpoint::Kind::descriptor) return take_over(endpoint.fd());
  if (endpoint.kind() == Endpoint::Kind::path) return bind_path(endpoint, for_all_users);
  BoundEndpoint bound;
  DEVSHARE_TRY(made, new_socket(operation));
  bound.socket_ = std::move(made);
  const Address address = address_of(endpoint);
  if (::bind(bound.fd(), reinterpret_cast<const sockaddr*>(&address.name), address.size) != 0) return failed(errno);
  DEVSHARE_CHECK(bound.listen());
  return bound;
}

Result<BoundEndpoint> BoundEndpoint::take_over(int fd) noexcept {
  if (!is_record_socket(fd)) return Error(Errc::invalid_argument, operation, {.system_errno = ENOTSOCK});
  BoundEndpoint bound;
  bound.connected_ = !is_listening(fd);
  ask_who_sends(fd);  // before anybody is accepted: what is sent until then carries it too
  bound.socket_ = UniqueFd(fd);
  (void)::fcntl(fd, F_SETFD, FD_CLOEXEC);
  (void)::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) | O_NONBLOCK);
  return bound;
}

Result<BoundEndpoint> BoundEndpoint::bind_path(const Endpoint& endpoint, bool for_all_users) noexcept {
  const std::string path(endpoint.name());
  const std::size_t slash = path.rfind('/');
  const std::string folder = slash == path.npos ? "." : path.substr(0, slash + 1);
  BoundEndpoint bound;
  bound.name_ = slash == path.npos ? path : path.substr(slash + 1);
  if (bound.name_.empty()) return Error(Errc::invalid_argument, operation);
  bound.directory_ = UniqueFd(::open(folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!bound.directory_) return failed(errno);

  DEVSHARE_TRY(locked, lock_file(bound.directory_.get(), bound.name_ + ".lock", 0600));
  bound.lock_ = std::move(locked);
  DEVSHARE_TRY(made, new_socket(operation));
  bound.socket_ = std::move(made);
  const Address address = address_of(endpoint);
  struct stat there {};
  if (::fstatat(bound.directory_.get(), bound.name_.c_str(), &there, AT_SYMLINK_NOFOLLOW) == 0) {
    // What a killed lender left may go; anything else is not ours to touch.
    if (!S_ISSOCK(there.st_mode)) return Error(Errc::endpoint_in_use, operation);
    DEVSHARE_TRY(in_use, somebody_listens(address));
    if (in_use) return Error(Errc::endpoint_in_use, operation);
    (void)::unlinkat(bound.directory_.get(), bound.name_.c_str(), 0);
  }
  const mode_t mode = for_all_users ? 0666 : 0600;
  (void)::fchmod(bound.fd(), mode);  // before the name exists, so that it never is for more
  if (::bind(bound.fd(), reinterpret_cast<const sockaddr*>(&address.name), address.size) != 0) return failed(errno);
  if (::fstatat(bound.directory_.get(), bound.name_.c_str(), &there, AT_SYMLINK_NOFOLLOW) == 0) {
    bound.device_ = there.st_dev;
    bound.inode_ = there.st_ino;
    if (for_all_users) (void)::fchmodat(bound.directory_.get(), bound.name_.c_str(), mode, 0);  // whatever the umask
  }
  DEVSHARE_CHECK(bound.listen());
  return bound;
}

Result<void> BoundEndpoint::listen() noexcept {
  ask_who_sends(fd());  // what is sent before it is accepted carries it too
  if (::listen(fd(), backlog) != 0) return failed(errno);
  return {};
}

void BoundEndpoint::close() noexcept {
  if (lock_) {
    struct stat there {};
    if (inode_ != 0 && ::fstatat(directory_.get(), name_.c_str(), &there, AT_SYMLINK_NOFOLLOW) == 0 &&
        there.st_dev == device_ && there.st_ino == inode_) {
      (void)::unlinkat(directory_.get(), name_.c_str(), 0);
    }
    const std::string lock_name = name_ + ".lock";
    struct stat locked {};
    if (::fstat(lock_.get(), &locked) == 0 &&
        ::fstatat(directory_.get(), lock_name.c_str(), &there, AT_SYMLINK_NOFOLLOW) == 0 && same_file(locked, there)) {
      (void)::unlinkat(directory_.get(), lock_name.c_str(), 0);
    }
  }
  forget();
}

void BoundEndpoint::forget() noexcept {
  socket_ = {};
  lock_ = {};
  directory_ = {};
}

}  // namespace devshare::detail
