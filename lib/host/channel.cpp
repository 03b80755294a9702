// SPDX-License-Identifier: Apache-2.0
#include "channel.hpp"

#include <sys/socket.h>
#include <sys/uio.h>

#include <cerrno>
#include <cstring>

namespace devshare::host {
namespace {

// One descriptor and no more: CMSG_SPACE has room for two, CMSG_LEN does not.
constexpr std::size_t control_length = CMSG_LEN(sizeof(int));

// Takes the first descriptor out of a message and closes all others. The count of all.
std::size_t take_descriptors(msghdr& header, UniqueFd* first) noexcept {
  std::size_t count = 0;
  for (cmsghdr* part = CMSG_FIRSTHDR(&header); part != nullptr; part = CMSG_NXTHDR(&header, part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) continue;
    for (std::size_t at = CMSG_LEN(0); at + sizeof(int) <= part->cmsg_len; at += sizeof(int)) {
      int raw = -1;
      std::memcpy(&raw, reinterpret_cast<const unsigned char*>(part) + at, sizeof raw);
      UniqueFd descriptor(raw);
      if (count++ == 0) *first = std::move(descriptor);
    }
  }
  return count;
}

}  // namespace

int send_message(int socket, std::span<const std::uint8_t> bytes, int descriptor, int flags) noexcept {
  iovec part{const_cast<std::uint8_t*>(bytes.data()), bytes.size()};
  alignas(cmsghdr) unsigned char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  if (descriptor >= 0) {
    header.msg_control = control;
    header.msg_controllen = control_length;
    cmsghdr* rights = CMSG_FIRSTHDR(&header);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(rights), &descriptor, sizeof descriptor);
  }
  ssize_t sent = 0;
  do {
    sent = ::sendmsg(socket, &header, flags | MSG_NOSIGNAL);
  } while (sent < 0 && errno == EINTR);
  return sent < 0 ? errno : 0;
}

Received receive_message(int socket, std::span<std::uint8_t> buffer, bool descriptor_wanted, int flags) noexcept {
  iovec part{buffer.data(), buffer.size()};
  alignas(cmsghdr) unsigned char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  if (descriptor_wanted) {
    header.msg_control = control;
    header.msg_controllen = control_length;
  }
  Received received;
  ssize_t length = ::recvmsg(socket, &header, flags | MSG_CMSG_CLOEXEC);
  // A peer that closed before reading all of ours leaves an error in front of what it had sent. It is there once.
  if (length < 0 && errno == ECONNRESET) length = ::recvmsg(socket, &header, flags | MSG_CMSG_CLOEXEC);
  if (length < 0) {
    if (errno == EAGAIN) received.outcome = Received::Outcome::nothing;
    if (errno == EINTR) received.outcome = Received::Outcome::interrupted;
    return received;
  }
  const std::size_t descriptors = take_descriptors(header, &received.descriptor);
  received.size = static_cast<std::size_t>(length);
  if (length == 0) {
    received.outcome = Received::Outcome::closed;  // or an empty message, which nobody of ours sends
  } else if ((header.msg_flags & MSG_TRUNC) != 0) {
    received.outcome = Received::Outcome::intruder;
  } else if ((header.msg_flags & MSG_CTRUNC) != 0) {
    // With room for one and none there, the kernel could not install it; else there was more than agreed.
    received.outcome =
        descriptor_wanted && descriptors == 0 ? Received::Outcome::descriptor_lost : Received::Outcome::intruder;
  } else {
    received.outcome = Received::Outcome::message;
  }
  if (received.outcome != Received::Outcome::message) received.descriptor = UniqueFd();
  return received;
}

}  // namespace devshare::host
