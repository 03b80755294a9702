// SPDX-License-Identifier: Apache-2.0
// A peer of lending that speaks its messages by hand, right or wrong, over a bare socket.
#pragma once

#include "lending/message.hpp"
#include "lending/socket.hpp"

#include <devshare/endpoint.hpp>

#include <cerrno>
#include <cstring>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

namespace devshare::test {

using detail::Message;
using detail::MessageBytes;
using detail::MessageType;
using detail::UniqueFd;

class RawPeer {
 public:
  RawPeer() = default;
  explicit RawPeer(int fd) : fd_(fd) {}
  static RawPeer connect(const Endpoint& endpoint, int type = SOCK_SEQPACKET) {
    RawPeer peer(::socket(AF_UNIX, type | SOCK_CLOEXEC, 0));
    const detail::Address address = detail::address_of(endpoint);
    while (::connect(peer.fd(), reinterpret_cast<const sockaddr*>(&address.name), address.size) != 0) {
      if (errno == EAGAIN || errno == EINTR) continue;
      return {};
    }
    return peer;
  }

  int fd() const { return fd_.get(); }
  explicit operator bool() const { return static_cast<bool>(fd_); }
  void hang_up() { fd_ = {}; }

  // False once the other side has hung up, or takes nothing.
  bool send(std::span<const std::byte> bytes, bool wait = true) const {
    return ::send(fd(), bytes.data(), bytes.size(), MSG_NOSIGNAL | (wait ? 0 : MSG_DONTWAIT)) >= 0;
  }
  bool send(const Message& message, bool wait = true) const { return send(detail::encode(message).bytes(), wait); }
  bool introduce(const Message& message) const {
    return detail::send_introduction(fd(), detail::encode(message).bytes()) == 0;
  }
  // The same with so many descriptors of nothing in particular.
  bool send_with_descriptors(std::span<const std::byte> bytes, std::size_t count) const {
    std::vector<char> control(CMSG_SPACE(count * sizeof(int)));
    iovec part{const_cast<std::byte*>(bytes.data()), bytes.size()};
    msghdr header{};
    header.msg_iov = &part;
    header.msg_iovlen = bytes.empty() ? 0 : 1;
    header.msg_control = control.data();
    header.msg_controllen = control.size();
    cmsghdr* const first = CMSG_FIRSTHDR(&header);
    first->cmsg_level = SOL_SOCKET;
    first->cmsg_type = SCM_RIGHTS;
    first->cmsg_len = CMSG_LEN(count * sizeof(int));
    const std::vector<int> descriptors(count, fd());
    std::memcpy(CMSG_DATA(first), descriptors.data(), count * sizeof(int));
    return ::sendmsg(fd(), &header, MSG_NOSIGNAL) >= 0;
  }

  // The next message of a lender (or of a borrower); none when the other side has hung up or said what is no message.
  std::optional<Message> receive(bool from_borrower = false) const {
    for (;;) {
      std::byte bytes[detail::longest_message + 1];
      const ssize_t got = ::recv(fd(), bytes, sizeof bytes, 0);
      if (got < 0 && (errno == EINTR || errno == ECONNRESET)) continue;
      if (got <= 0) return {};
      Message message;
      const std::span<const std::byte> said(bytes, static_cast<std::size_t>(got));
      if (detail::decode(said, from_borrower, message) != detail::Decoded::yes) return {};
      return message;
    }
  }
  std::optional<MessageType> receive_type(bool from_borrower = false) const {
    const auto message = receive(from_borrower);
    if (!message) return {};
    return message->type;
  }
  // Reads until the other side has hung up; what it said last.
  std::optional<Message> read_to_the_end() const {
    std::optional<Message> last;
    while (auto next = receive()) last = next;
    return last;
  }
  // Whether there is something to read, or the end, within that time.
  bool has_word(int milliseconds) const {
    pollfd waiting{fd(), POLLIN, 0};
    return ::poll(&waiting, 1, milliseconds) == 1;
  }

 private:
  UniqueFd fd_;
};

inline Message message_of(MessageType type, std::uint32_t request = 0, std::uint64_t lease = 0) {
  Message message;
  message.type = type;
  message.request = request;
  message.lease = lease;
  message.device = 0;
  message.pid = 1;
  message.mechanisms = {Mechanism::by_key, Mechanism::v1, Mechanism::v2, Mechanism::fabric};
  return message;
}
inline Message request_for(std::string_view name, std::uint32_t request, bool may_wait = false) {
  Message message = message_of(MessageType::borrow, request);
  message.set_name(name);
  message.may_wait = may_wait;
  return message;
}

// Room for so many descriptors, as far as the machine lets us.
inline bool allow_descriptors(rlim_t count) {
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = count;
  return count <= limit.rlim_max && ::setrlimit(RLIMIT_NOFILE, &limit) == 0;
}

}  // namespace devshare::test
