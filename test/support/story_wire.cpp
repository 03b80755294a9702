// SPDX-License-Identifier: Apache-2.0
#include "story_wire.hpp"

#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string_view>
#include <vector>

namespace devshare::test::story {
namespace {

struct Header {
  Op op;
  std::int32_t number;
  std::uint32_t who;
  std::uint32_t name;
  std::uint32_t data;
};

constexpr std::size_t largest_frame = std::size_t{128} * 1024;

}  // namespace

bool Channel::pair(Channel* one, Channel* other) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) return false;
  *one = Channel(ends[0]);
  *other = Channel(ends[1]);
  return true;
}

bool Channel::send(const Frame& frame) const {
  const Header header{frame.op, frame.number, static_cast<std::uint32_t>(frame.who.size()),
                      static_cast<std::uint32_t>(frame.name.size()), static_cast<std::uint32_t>(frame.data.size())};
  std::string message(reinterpret_cast<const char*>(&header), sizeof(header));
  message += frame.who;
  message += frame.name;
  message += frame.data;
  for (;;) {
    const ssize_t sent = ::send(fd_, message.data(), message.size(), MSG_NOSIGNAL);
    if (sent == static_cast<ssize_t>(message.size())) return true;
    if (sent < 0 && errno == EINTR) continue;
    return false;
  }
}

bool Channel::receive(Frame* frame, bool wait) const {
  std::vector<char> buffer(largest_frame);
  ssize_t size = 0;
  do {
    size = ::recv(fd_, buffer.data(), buffer.size(), wait ? 0 : MSG_DONTWAIT);
  } while (size < 0 && errno == EINTR);
  Header header{};
  if (size < static_cast<ssize_t>(sizeof(header))) return false;
  std::memcpy(&header, buffer.data(), sizeof(header));
  std::string_view rest(buffer.data() + sizeof(header), static_cast<std::size_t>(size) - sizeof(header));
  if (rest.size() != std::size_t{header.who} + header.name + header.data) return false;
  const auto take = [&rest](std::size_t length) {
    std::string part(rest.substr(0, length));
    rest.remove_prefix(length);
    return part;
  };
  frame->op = header.op;
  frame->number = header.number;
  frame->who = take(header.who);
  frame->name = take(header.name);
  frame->data = take(header.data);
  return true;
}

void Channel::close() noexcept {
  if (fd_ >= 0) ::close(std::exchange(fd_, -1));
}

}  // namespace devshare::test::story
