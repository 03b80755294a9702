// SPDX-License-Identifier: Apache-2.0
#include "socket.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

// Newer than the C library's headers.
#ifndef SO_PASSPIDFD
#define SO_PASSPIDFD 76
#endif
#ifndef SCM_PIDFD
#define SCM_PIDFD 0x04
#endif

namespace devshare::detail {
namespace {

void set_option(int fd, int option, int value) noexcept { (void)::setsockopt(fd, SOL_SOCKET, option, &value, sizeof value); }

int get_option(int fd, int option) noexcept {
  int value = -1;
  socklen_t size = sizeof value;
  return ::getsockopt(fd, SOL_SOCKET, option, &value, &size) == 0 ? value : -1;
}

int fd_in(const cmsghdr* control, std::size_t index) noexcept {
  int fd = -1;
  std::memcpy(&fd, CMSG_DATA(control) + index * sizeof fd, sizeof fd);
  return fd;
}

std::size_t fds_in(const cmsghdr* control) noexcept { return (control->cmsg_len - CMSG_LEN(0)) / sizeof(int); }

void take_credentials(const cmsghdr* control, Sender& sender) noexcept {
  ucred credentials{};
  if (control->cmsg_len < CMSG_LEN(sizeof credentials)) return;
  std::memcpy(&credentials, CMSG_DATA(control), sizeof credentials);
  sender.peer = {.pid = credentials.pid, .uid = credentials.uid, .gid = credentials.gid};
  sender.known = true;
}

// A message that went without credentials comes with those of nobody, who has no process.
bool said_nothing(const Sender& sender) noexcept {
  constexpr std::uint32_t nobody = 65534;  // the kernel's, unless somebody changed it
  return sender.peer.pid == 0 && !sender.process && sender.peer.uid == nobody;
}

void look_at_control(msghdr& header, Sender& sender) noexcept {
  for (cmsghdr* control = CMSG_FIRSTHDR(&header); control != nullptr; control = CMSG_NXTHDR(&header, control)) {
    if (control->cmsg_level != SOL_SOCKET) continue;
    if (control->cmsg_type == SCM_CREDENTIALS) take_credentials(control, sender);
    if (control->cmsg_type == SCM_PIDFD && fds_in(control) == 1) sender.process = UniqueFd(fd_in(control, 0));
    if (control->cmsg_type == SCM_RIGHTS) {
      for (std::size_t i = 0; i < fds_in(control); ++i) ::close(fd_in(control, i));
    }
  }
}

// Who closes a socket with something unread in it resets the other side, which learns that first, once; what was sent to
// it before is there still.
template <class Receive>
ssize_t despite_reset(Receive receive) noexcept {
  const ssize_t got = receive();
  return got < 0 && errno == ECONNRESET ? receive() : got;
}

Received result_of(ssize_t got, Record& record) noexcept {
  if (got < 0) {
    record.size = 0;
    return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR ? Received::nothing : Received::closed;
  }
  if (got == 0) return Received::closed;  // no message of lending is empty
  record.size = std::min(static_cast<std::size_t>(got), record.storage.size());
  return static_cast<std::size_t>(got) > longest_message ? Received::too_long : Received::record;
}

}  // namespace

Address address_of(const Endpoint& endpoint) noexcept {
  Address address;
  address.name.sun_family = AF_UNIX;
  const bool abstract = endpoint.kind() == Endpoint::Kind::abstract;
  endpoint.name().copy(address.name.sun_path + (abstract ? 1 : 0), endpoint.name().size());
  address.size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + endpoint.name().size() + 1);
  return address;
}

Result<UniqueFd> new_socket(Operation operation) noexcept {
  UniqueFd fd(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (fd) return fd;
  const Errc kind = errno == EMFILE || errno == ENFILE ? Errc::fd_limit : Errc::backend_unavailable;
  return Error(kind, operation, {.system_errno = errno});
}

bool is_record_socket(int fd) noexcept {
  return get_option(fd, SO_DOMAIN) == AF_UNIX && get_option(fd, SO_TYPE) == SOCK_SEQPACKET;
}

bool is_listening(int fd) noexcept { return get_option(fd, SO_ACCEPTCONN) == 1; }

int send_record(int fd, std::span<const std::byte> bytes) noexcept {
  return ::send(fd, bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL) < 0 ? errno : 0;
}

int send_introduction(int fd, std::span<const std::byte> bytes) noexcept {
  const ucred self{::getpid(), ::geteuid(), ::getegid()};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof self)]{};
  iovec part{const_cast<std::byte*>(bytes.data()), bytes.size()};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  header.msg_control = control;
  header.msg_controllen = sizeof control;
  cmsghdr* const first = CMSG_FIRSTHDR(&header);
  first->cmsg_level = SOL_SOCKET;
  first->cmsg_type = SCM_CREDENTIALS;
  first->cmsg_len = CMSG_LEN(sizeof self);
  std::memcpy(CMSG_DATA(first), &self, sizeof self);
  return ::sendmsg(fd, &header, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 ? errno : 0;
}

Received receive_record(int fd, Record& record) noexcept {
  // Without room for control data the kernel closes what descriptors come.
  return result_of(despite_reset([&] { return ::recv(fd, record.storage.data(), record.storage.size(), MSG_DONTWAIT | MSG_TRUNC); }),
                   record);
}

void ask_who_sends(int fd) noexcept {
  set_option(fd, SO_PASSCRED, 1);
  set_option(fd, SO_PASSPIDFD, 1);
}

Received receive_introduction(int fd, Record& record, Sender& sender) noexcept {
  constexpr std::size_t most_descriptors = 253;  // that one message may carry
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(ucred)) + CMSG_SPACE(sizeof(int)) +
                                CMSG_SPACE(most_descriptors * sizeof(int))];
  iovec part{record.storage.data(), record.storage.size()};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  header.msg_control = control;
  header.msg_controllen = sizeof control;
  const ssize_t got =
      despite_reset([&] { return ::recvmsg(fd, &header, MSG_DONTWAIT | MSG_TRUNC | MSG_CMSG_CLOEXEC); });
  const Received received = result_of(got, record);
  if (got >= 0) look_at_control(header, sender);  // also of an empty record, which may bring descriptors
  if (received == Received::nothing || received == Received::closed) return received;
  set_option(fd, SO_PASSPIDFD, 0);
  set_option(fd, SO_PASSCRED, 0);
  if (sender.known && !sender.process && sender.peer.pid > 0) (void)find_process(sender);
  sender.known = sender.known && !said_nothing(sender);
  return received;
}

bool find_process(Sender& sender) noexcept {
  sender.process = UniqueFd(static_cast<int>(::syscall(SYS_pidfd_open, sender.peer.pid, 0)));
  sender.no_room = !sender.process && (errno == EMFILE || errno == ENFILE);
  return static_cast<bool>(sender.process);
}

bool permits(const Allow& allow, const PeerProcess& peer) noexcept {
#if defined(__cpp_exceptions)
  try {
    return allow.allows(peer, ::geteuid());
  } catch (...) {
    return false;
  }
#else
  return allow.allows(peer, ::geteuid());
#endif
}

Error socket_error(Operation operation, int system_errno) noexcept {
  const auto kind = [&] {
    switch (system_errno) {
      case ENOENT:
      case ECONNREFUSED: return Errc::no_lender;
      case EADDRINUSE: return Errc::endpoint_in_use;
      case EACCES:
      case EPERM:
      case EROFS: return Errc::not_permitted;
      case EMFILE:
      case ENFILE: return Errc::fd_limit;
      case ENOMEM:
      case ENOBUFS: return Errc::out_of_memory;
      case ENOSPC:
      case EDQUOT: return Errc::no_space;
      case EPIPE:
      case ECONNRESET:
      case ENOTCONN: return Errc::exporter_gone;
      case EAGAIN:
      case ETIMEDOUT: return Errc::timed_out;
      case EPROTOTYPE: return Errc::bad_message;  // a socket, but not one that keeps records apart
      case ENOTDIR:
      case ELOOP:
      case ENOTSOCK:
      case ENAMETOOLONG:
      case EBADF:
      case EINVAL: return Errc::invalid_argument;
      default: return Errc::backend_unavailable;
    }
  }();
  return Error(kind, operation, {.system_errno = system_errno});
}

bool wait_readable(int fd, int other, Deadline deadline, bool or_writable) noexcept {
  for (;;) {
    pollfd waiting[2] = {{fd, static_cast<short>(or_writable ? POLLIN | POLLOUT : POLLIN), 0}, {other, POLLIN, 0}};
    const std::int64_t left = deadline.nanoseconds_left();
    const timespec time{left / 1'000'000'000, left % 1'000'000'000};
    const int ready = ::ppoll(waiting, other >= 0 ? 2 : 1, deadline.is_never() ? nullptr : &time, nullptr);
    if (ready > 0) return true;
    if (ready == 0 && deadline.passed()) return false;
    if (ready < 0 && errno != EINTR && errno != EAGAIN) return false;
  }
}

}  // namespace devshare::detail
