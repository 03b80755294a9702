// SPDX-License-Identifier: Apache-2.0
// The key path by hand: what devshare does for one share, and nothing else.
//
//   exporter   memfd of fixed size; ends touched; a random name; the process that may have it, by its pidfd's inode,
//              still alive when it is admitted; a thread that answers requests on kept connections
//   importer   one connection to an exporter, whose user is checked once; a request and a reply with the descriptor;
//              seals and size checked, so that no SIGBUS can come; ends touched; closed
//
// 17 system calls on both sides together when the ends are copied.
#include "by_hand.hpp"
#include "sealed_memfd.hpp"

#include <poll.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <mutex>
#include <thread>
#include <unordered_map>
#include <vector>

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif
#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif

namespace devshare::bench {
namespace {

using Secret = std::array<std::uint8_t, 24>;

// What the exporter tells the importer by other means.
struct Key {
  std::uint64_t endpoint;  // of the exporting process
  std::uint64_t slot;
  Secret secret;
};
struct Request {
  std::uint32_t sequence;
  Key key;
};
struct Reply {
  std::uint32_t sequence;
  std::int32_t code;
  std::uint64_t size;
};

// Random bytes, fetched a page at a time.
void take_random(void* bytes, std::size_t count) {
  static std::array<std::uint8_t, 4096> pool;
  static std::size_t used = pool.size();
  if (pool.size() - used < count) {
    if (::getrandom(pool.data(), pool.size(), 0) != static_cast<ssize_t>(pool.size())) give_up("getrandom");
    used = 0;
  }
  std::memcpy(bytes, pool.data() + used, count);
  used += count;
}

socklen_t address_of(std::uint64_t endpoint, sockaddr_un* address) {
  *address = {};
  address->sun_family = AF_UNIX;
  const std::string name = "devshare-bench." + std::to_string(endpoint);
  std::memcpy(address->sun_path + 1, name.data(), name.size());
  return static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
}

std::uint64_t inode_of(int descriptor) {
  struct stat status {};
  if (::fstat(descriptor, &status) != 0) give_up("fstat");
  return status.st_ino;
}

template <class T>
void send_with(int socket, const T& message, int descriptor) {
  iovec part{const_cast<T*>(&message), sizeof(message)};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))];
  if (descriptor >= 0) {
    header.msg_control = control;
    header.msg_controllen = sizeof(control);
    cmsghdr* const rights = CMSG_FIRSTHDR(&header);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(rights), &descriptor, sizeof(descriptor));
  }
  if (::sendmsg(socket, &header, MSG_NOSIGNAL) != static_cast<ssize_t>(sizeof(message))) give_up("sendmsg");
}

// False at the end of the connection, or when the message is not what it should be.
template <class T>
bool receive_with(int socket, T* message, int* descriptor) {
  iovec part{message, sizeof(*message)};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))];
  if (descriptor != nullptr) {
    header.msg_control = control;
    header.msg_controllen = sizeof(control);
    *descriptor = -1;
  }
  const ssize_t size = ::recvmsg(socket, &header, MSG_CMSG_CLOEXEC);
  if (size != static_cast<ssize_t>(sizeof(*message)) || (header.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0) return false;
  if (descriptor == nullptr) return true;
  for (cmsghdr* one = CMSG_FIRSTHDR(&header); one != nullptr; one = CMSG_NXTHDR(&header, one)) {
    if (one->cmsg_type == SCM_RIGHTS) std::memcpy(descriptor, CMSG_DATA(one), sizeof(*descriptor));
  }
  return true;
}

class Exporter {
 public:
  void admit_to_all(std::int32_t pid) {
    const int pidfd = static_cast<int>(::syscall(SYS_pidfd_open, pid, 0));
    if (pidfd < 0) give_up("pidfd_open");
    importers_.push_back({pidfd, inode_of(pidfd)});
  }

  Key share(std::size_t size, Touch touch) {
    if (listener_ < 0) start();
    const int descriptor = make_sealed_memfd(size);
    std::byte* view = nullptr;
    if (touch == Touch::views) {
      view = map_whole(descriptor, size);
      view[0] = first_byte;
      view[size - 1] = last_byte;
    } else {
      write_at(descriptor, 0, &first_byte, 1);
      write_at(descriptor, size - 1, &last_byte, 1);
    }
    Key key{endpoint_, 0, {}};
    take_random(key.secret.data(), key.secret.size());
    std::vector<std::uint64_t> admitted;
    for (const Importer& importer : importers_) {
      pollfd ended{importer.pidfd, POLLIN, 0};
      if (::poll(&ended, 1, 0) != 0) give_up("the importer has ended");
      admitted.push_back(importer.inode);
    }
    const std::lock_guard lock(mutex_);
    key.slot = next_slot_++;
    shared_.emplace(key.slot, Shared{key.secret, descriptor, size, view, std::move(admitted)});
    return key;
  }

  void end_all() {
    std::unordered_map<std::uint64_t, Shared> ending;
    {
      const std::lock_guard lock(mutex_);
      ending.swap(shared_);
    }
    for (const auto& [slot, one] : ending) {
      if (one.view != nullptr) unmap_whole(one.view, one.size);
      ::close(one.descriptor);
    }
  }

 private:
  struct Importer {
    int pidfd;
    std::uint64_t inode;
  };
  struct Shared {
    Secret secret;
    int descriptor;
    std::size_t size;
    std::byte* view;
    std::vector<std::uint64_t> admitted;
  };

  void start() {
    take_random(&endpoint_, sizeof(endpoint_));
    listener_ = ::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    sockaddr_un address;
    const socklen_t length = address_of(endpoint_, &address);
    if (::bind(listener_, reinterpret_cast<const sockaddr*>(&address), length) != 0) give_up("bind");
    if (::listen(listener_, 128) != 0) give_up("listen");
    std::thread([this] { serve(); }).detach();
  }

  void serve() {
    const int epoll = ::epoll_create1(EPOLL_CLOEXEC);
    std::unordered_map<int, std::uint64_t> peers;  // connection -> the inode of the process at its other end
    const auto watch = [epoll](int descriptor) {
      epoll_event event{};
      event.events = EPOLLIN;
      event.data.fd = descriptor;
      if (::epoll_ctl(epoll, EPOLL_CTL_ADD, descriptor, &event) != 0) give_up("epoll_ctl");
    };
    watch(listener_);
    for (;;) {
      epoll_event events[16];
      const int count = ::epoll_wait(epoll, events, 16, -1);
      for (int i = 0; i < count; ++i) {
        const int socket = events[i].data.fd;
        if (socket == listener_) {
          const int connection = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
          if (connection < 0) give_up("accept4");
          peers[connection] = peer_of(connection);
          watch(connection);
        } else if (!answer(socket, peers[socket])) {
          peers.erase(socket);
          ::close(socket);
        }
      }
    }
  }

  static std::uint64_t peer_of(int socket) {
    int pidfd = -1;
    socklen_t length = sizeof(pidfd);
    if (::getsockopt(socket, SOL_SOCKET, SO_PEERPIDFD, &pidfd, &length) != 0) give_up("SO_PEERPIDFD");
    const std::uint64_t inode = inode_of(pidfd);
    ::close(pidfd);
    return inode;
  }

  bool answer(int socket, std::uint64_t peer) {
    Request request;
    if (!receive_with(socket, &request, nullptr)) return false;
    Reply reply{request.sequence, -1, 0};
    const std::lock_guard lock(mutex_);  // also while sending: the descriptor must not be closed meanwhile
    const auto found = shared_.find(request.key.slot);
    int descriptor = -1;
    if (found != shared_.end() && found->second.secret == request.key.secret) {
      const Shared& one = found->second;
      if (std::find(one.admitted.begin(), one.admitted.end(), peer) != one.admitted.end()) {
        reply.code = 0;
        reply.size = one.size;
        descriptor = one.descriptor;
      }
    }
    send_with(socket, reply, descriptor);
    return true;
  }

  std::vector<Importer> importers_;
  int listener_ = -1;
  std::uint64_t endpoint_ = 0;
  std::mutex mutex_;
  std::unordered_map<std::uint64_t, Shared> shared_;
  std::uint64_t next_slot_ = 0;
};

class Importer {
 public:
  void use(const Key& key, std::size_t size, Touch touch) {
    const int connection = connection_to(key.endpoint);
    const Request request{++sequence_, key};
    send_with(connection, request, -1);
    Reply reply;
    int descriptor = -1;
    if (!receive_with(connection, &reply, &descriptor) || reply.sequence != request.sequence) give_up("the reply");
    if (reply.code != 0 || descriptor < 0 || reply.size != size) give_up("refused");
    if (!is_sealed_memfd(descriptor, size)) give_up("the memory can change its size");
    std::byte first{};
    std::byte last{};
    if (touch == Touch::views) {
      std::byte* const view = map_whole(descriptor, size);
      ::close(descriptor);
      first = view[0];
      last = view[size - 1];
      unmap_whole(view, size);
    } else {
      read_at(descriptor, 0, &first, 1);
      read_at(descriptor, size - 1, &last, 1);
      ::close(descriptor);
    }
    if (first != first_byte || last != last_byte) give_up("the bytes are not those that were written");
  }

 private:
  int connection_to(std::uint64_t endpoint) {
    if (const auto found = connections_.find(endpoint); found != connections_.end()) return found->second;
    const int socket = ::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    sockaddr_un address;
    const socklen_t length = address_of(endpoint, &address);
    if (::connect(socket, reinterpret_cast<const sockaddr*>(&address), length) != 0) give_up("connect");
    ucred exporter{};
    socklen_t size = sizeof(exporter);
    if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &exporter, &size) != 0 || exporter.uid != ::geteuid()) {
      give_up("the exporter is another user");
    }
    const timeval limit{10, 0};
    ::setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
    connections_.emplace(endpoint, socket);
    return socket;
  }

  std::unordered_map<std::uint64_t, int> connections_;
  std::uint32_t sequence_ = 0;
};

class ByHand final : public Way {
 public:
  explicit ByHand(Touch touch) : touch_(touch) {}

  std::int32_t introduce() override { return static_cast<std::int32_t>(::getpid()); }
  void meet(std::int32_t importer) override { exporter_.admit_to_all(importer); }
  Message share(std::size_t size) override {
    const Key key = exporter_.share(size, touch_);
    Message message{};
    std::memcpy(message.data(), &key, sizeof(key));
    return message;
  }
  void end() override { exporter_.end_all(); }
  void use(const Message& message, std::size_t size) override {
    Key key;
    std::memcpy(&key, message.data(), sizeof(key));
    importer_.use(key, size, touch_);
  }

 private:
  const Touch touch_;
  Exporter exporter_;
  Importer importer_;
};

}  // namespace

std::unique_ptr<Way> by_hand(Touch touch) { return std::make_unique<ByHand>(touch); }

}  // namespace devshare::bench
