// SPDX-License-Identifier: Apache-2.0
// Who a process is: an identity that the kernel vouches for and that no later process ever has (B013), and the number
// by which aclrtDeviceGetBareTgid names it to others.
//
// The identity is the inode of a pidfd, which from Linux 6.9 on is a counter over the life of the system, the same
// seen from every pid namespace. Exec keeps it, fork does not. Older kernels give all pidfds one inode: there it is the
// pid together with the start time, which holds within one pid namespace.
#pragma once

#include "unique_fd.hpp"

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <unordered_map>

namespace devshare::host {

struct ProcessIdentity {
  std::uint64_t serial = 0;  // pidfd inode, or start time where those do not differ
  std::int32_t pid = 0;      // only beside a start time

  explicit operator bool() const noexcept { return serial != 0; }
  bool operator==(const ProcessIdentity&) const = default;
};

// False on kernels whose pidfds all have one inode, and where DEVSHARE_HOST_IDENTITY=start_time plays one.
bool pidfd_inodes_differ() noexcept;

// The identity of a live process; empty when it has ended or when nothing can be learnt. `pid` is needed on old
// kernels only, and `pidfd` (which may be -1) on new ones.
ProcessIdentity identity_of(int pidfd, pid_t pid) noexcept;

// What the kernel says of the process at the other end of a connected Unix socket. For the end that called accept,
// that is the process which called connect; for the other end, the one which called listen. Empty when there is no
// descriptor left to ask with.
struct Peer {
  ProcessIdentity identity;
  pid_t pid = 0;  // in this process's pid namespace; 0 when it has none there, and then it matches nothing
  uid_t uid = static_cast<uid_t>(-1);
};
std::optional<Peer> identify_peer(int socket) noexcept;
std::optional<uid_t> peer_user(int socket) noexcept;

// The number of this process for others: the pid in the initial pid namespace. In a nested one, where nobody inside can
// learn the outer number, and everywhere with DEVSHARE_HOST_BARE_PID=inode: first_inode_number + a residue of the
// inode, larger than any pid. DEVSHARE_HOST_BARE_PID_OFFSET adds on top. Cached; looked up anew in a child process.
std::int32_t bare_pid();

inline constexpr std::int32_t first_inode_number = 1 << 22;  // the kernel's pids stay below
std::int32_t inode_number(const ProcessIdentity& identity) noexcept;

// True when this process is in the initial pid namespace, where a plain pid means the same to everybody.
bool in_initial_pid_namespace() noexcept;

// The live processes behind plain pids. A process asked for again costs one poll on the pidfd that is kept, and no
// more than a bounded number of pidfds is kept. Not thread-safe: its owner has a lock.
class ProcessDirectory {
 public:
  enum class Outcome : std::uint8_t { alive, nobody, no_descriptor };

  Outcome resolve(pid_t pid, ProcessIdentity* identity);
  void close_descriptors() noexcept;  // in a forked child

 private:
  struct Known {
    UniqueFd pidfd;
    ProcessIdentity identity;
  };
  void make_room();

  std::unordered_map<pid_t, Known> known_;
};

}  // namespace devshare::host
