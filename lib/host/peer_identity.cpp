// SPDX-License-Identifier: Apache-2.0
#include "peer_identity.hpp"

#include "calls.hpp"
#include "failure.hpp"
#include "lifecycle.hpp"
#include "profile.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <string_view>
#include <utility>

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif
#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif

namespace devshare::host {
namespace {

constexpr std::size_t most_kept_pidfds = 256;

UniqueFd open_pidfd(pid_t pid) noexcept {  // CLOEXEC by itself
  return UniqueFd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
}

bool has_ended(int pidfd) noexcept {
  pollfd waiting{pidfd, POLLIN, 0};
  return ::poll(&waiting, 1, 0) != 0;
}

// Field 22 of /proc/PID/stat, in clock ticks since boot; 0 when there is no such process.
std::uint64_t start_time(pid_t pid) noexcept {
  std::array<char, 32> path{};
  std::snprintf(path.data(), path.size(), "/proc/%d/stat", static_cast<int>(pid));
  const UniqueFd file(::open(path.data(), O_RDONLY | O_CLOEXEC));
  if (!file) return 0;
  std::array<char, 1024> text{};
  const ssize_t length = ::read(file.get(), text.data(), text.size());
  if (length <= 0) return 0;
  std::string_view rest(text.data(), static_cast<std::size_t>(length));
  const std::size_t name_end = rest.rfind(')');  // a program's name may hold anything, also blanks and brackets
  if (name_end == std::string_view::npos) return 0;
  rest.remove_prefix(name_end + 1);
  if (rest.size() > 1 && rest[1] == 'Z') return 0;
  for (int field = 3; field <= 22; ++field) {
    const std::size_t blank = rest.find(' ');
    if (blank == std::string_view::npos) return 0;
    rest.remove_prefix(blank + 1);
  }
  std::uint64_t ticks = 0;
  std::from_chars(rest.data(), rest.data() + rest.size(), ticks);
  return ticks;
}

// Looks a number up once in each process: a child is another process, and may be in another namespace.
template <class Lookup>
std::int32_t once_a_process(Lookup lookup) noexcept {
  struct alignas(8) Answer {  // one word: clang calls libatomic for one that is not aligned like a word
    std::uint32_t process;
    std::int32_t number;  // unknown until looked up
  };
  constexpr std::int32_t unknown = -1;
  static std::atomic<Answer> kept{Answer{0, unknown}};
  Answer answer = kept.load(std::memory_order_relaxed);
  if (answer.number == unknown || answer.process != process_generation()) {
    answer = {process_generation(), lookup()};
    kept.store(answer, std::memory_order_relaxed);
  }
  return answer.number;
}

pid_t own_pid() noexcept {
  return once_a_process([] { return ::getpid(); });
}

std::int32_t own_inode_number() noexcept {
  // Without inodes that differ the plain pid is the best there is: right among processes of one namespace.
  if (!pidfd_inodes_differ()) return own_pid();
  return once_a_process([] {
    const UniqueFd self = open_pidfd(::getpid());
    const ProcessIdentity identity = identity_of(self.get(), ::getpid());
    return identity ? inode_number(identity) : ::getpid();
  });
}

}  // namespace

bool pidfd_inodes_differ() noexcept {
  enum : int { unknown, no, yes };
  static constinit std::atomic<int> kept = unknown;
  int known = kept.load(std::memory_order_relaxed);
  if (known == unknown) {
    constexpr decltype(statfs::f_type) pidfs_magic = 0x50494446;
    const UniqueFd self = open_pidfd(::getpid());
    struct statfs system {};
    const bool no_descriptor = !self && (errno == EMFILE || errno == ENFILE);
    known = self && ::fstatfs(self.get(), &system) == 0 && system.f_type == pidfs_magic ? yes : no;
    if (!no_descriptor) kept.store(known, std::memory_order_relaxed);  // else it is not known yet
  }
  return known == yes && !profile().identity_by_start_time;
}

ProcessIdentity identity_of(int pidfd, pid_t pid) noexcept {
  if (pidfd_inodes_differ()) {
    struct stat status {};
    if (pidfd < 0 || ::fstat(pidfd, &status) != 0) return {};
    return {status.st_ino, 0};
  }
  if (pid <= 0) return {};
  const std::uint64_t started = start_time(pid);
  // The pidfd, where there is one, says that the number still belonged to the process when its start time was read.
  if (started == 0 || (pidfd >= 0 && has_ended(pidfd))) return {};
  return {started, pid};
}

std::optional<uid_t> peer_user(int socket) noexcept {
  ucred credentials{};
  socklen_t length = sizeof credentials;
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &credentials, &length) != 0) return std::nullopt;
  return credentials.uid;
}

std::optional<Peer> identify_peer(int socket) noexcept {
  ucred credentials{};
  socklen_t length = sizeof credentials;
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &credentials, &length) != 0) return std::nullopt;

  int raw = -1;
  length = sizeof raw;
  UniqueFd pidfd(::getsockopt(socket, SOL_SOCKET, SO_PEERPIDFD, &raw, &length) == 0 ? raw : -1);
  if (!pidfd && errno == ENOPROTOOPT && credentials.pid > 0) pidfd = open_pidfd(credentials.pid);  // before Linux 6.5
  if (!pidfd && (errno == EMFILE || errno == ENFILE)) return std::nullopt;  // not knowing is not "somebody else"

  Peer peer;
  peer.identity = identity_of(pidfd.get(), credentials.pid);
  peer.pid = credentials.pid;
  peer.uid = credentials.uid;
  return peer;
}

std::int32_t bare_pid() {
  const Profile& switches = profile();
  // Both forms are kept, since aclInit may put another profile in force.
  const std::int32_t number =
      in_initial_pid_namespace() && !switches.bare_pid_by_inode ? own_pid() : own_inode_number();
  return number + switches.bare_pid_offset;
}

std::int32_t inode_number(const ProcessIdentity& identity) noexcept {
  constexpr std::uint64_t room = (std::uint64_t{1} << 31) - first_inode_number;
  return static_cast<std::int32_t>(static_cast<std::uint64_t>(first_inode_number) + identity.serial % room);
}

bool in_initial_pid_namespace() noexcept {
  return once_a_process([] {
           constexpr std::string_view name_of_initial = "pid:[4026531836]";  // PROC_PID_INIT_INO
           std::array<char, 64> name{};
           const ssize_t length = ::readlink("/proc/self/ns/pid", name.data(), name.size());
           return std::int32_t{length > 0 &&
                               std::string_view(name.data(), static_cast<std::size_t>(length)) == name_of_initial};
         }) != 0;
}

ProcessDirectory::Outcome ProcessDirectory::resolve(pid_t pid, ProcessIdentity* identity) {
  if (pid <= 0) return Outcome::nobody;
  if (const auto found = known_.find(pid); found != known_.end()) {
    if (!has_ended(found->second.pidfd.get())) {
      *identity = found->second.identity;
      return Outcome::alive;
    }
    known_.erase(found);  // the number may belong to another process by now
  }

  UniqueFd pidfd = open_pidfd(pid);
  if (!pidfd && (errno == EMFILE || errno == ENFILE) && !known_.empty()) {
    known_.clear();
    pidfd = open_pidfd(pid);
  }
  if (!pidfd && (errno == EMFILE || errno == ENFILE)) return Outcome::no_descriptor;
  if (!pidfd && errno != ENOSYS) return Outcome::nobody;  // none, or a thread that is no process
  if (pidfd && has_ended(pidfd.get())) return Outcome::nobody;
  const ProcessIdentity found = identity_of(pidfd.get(), pid);
  if (!found) return Outcome::nobody;
  *identity = found;
  if (pidfd) {
    make_room();
    known_.emplace(pid, Known{std::move(pidfd), found});
  }
  return Outcome::alive;
}

void ProcessDirectory::close_descriptors() noexcept {
  for (auto& [pid, known] : known_) known.pidfd = UniqueFd();
}

void ProcessDirectory::make_room() {
  rlimit limit{};
  std::size_t most = most_kept_pidfds;
  if (::getrlimit(RLIMIT_NOFILE, &limit) == 0) most = std::min<std::size_t>(most, limit.rlim_cur / 8);
  if (known_.size() < most || known_.empty()) return;
  const std::size_t dead = std::erase_if(known_, [](const auto& entry) { return has_ended(entry.second.pidfd.get()); });
  if (dead == 0) known_.erase(known_.begin());
}

}  // namespace devshare::host

namespace devshare::host::calls {

aclError aclrtDeviceGetBareTgid(std::int32_t* pid) {
  if (pid == nullptr) return refuse(code::invalid_param, Reason::bad_argument, "pid is a null pointer");
  *pid = bare_pid();
  return code::success;
}

}  // namespace devshare::host::calls
