// SPDX-License-Identifier: Apache-2.0
#include "hand_lender.hpp"

#include "../way.hpp"

#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <span>

namespace devshare::bench {
namespace {

enum class Verb : std::uint32_t { borrow, imported, returned };
struct Said {
  Verb verb{};
  std::uint32_t offer = 0;
};

struct Name {
  sockaddr_un address{};
  socklen_t size = 0;
  explicit Name(const std::string& name) {
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path + 1, name.data(), name.size());
    size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  }
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&address); }
};

void watch(int epoll, int fd) {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.fd = fd;
  if (::epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) != 0) give_up("epoll_ctl");
}

}  // namespace

void serve_by_hand(const std::string& name, std::vector<TicketBytes> tickets) {
  const Name at(name);
  const int listening = ::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  if (::bind(listening, at.get(), at.size) != 0 || ::listen(listening, 64) != 0) give_up("listening");
  const int epoll = ::epoll_create1(EPOLL_CLOEXEC);
  watch(epoll, listening);
  std::vector<std::uint32_t> holders(tickets.size());
  for (;;) {
    epoll_event event{};
    if (::epoll_wait(epoll, &event, 1, -1) != 1) continue;
    if (event.data.fd == listening) {
      watch(epoll, ::accept4(listening, nullptr, nullptr, SOCK_CLOEXEC));
      continue;
    }
    Said message;
    if (::recv(event.data.fd, &message, sizeof message, 0) != static_cast<ssize_t>(sizeof message)) {
      ::close(event.data.fd);
      continue;
    }
    if (message.verb == Verb::borrow) {
      ++holders[message.offer];
      ::send(event.data.fd, tickets[message.offer].data(), ticket_size, MSG_NOSIGNAL);
    } else if (message.verb == Verb::returned) {
      --holders[message.offer];
    }
  }
}

HandClient::HandClient(const std::string& name) : socket_(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0)) {
  const Name at(name);
  for (int tries = 0; ::connect(socket_, at.get(), at.size) != 0; ++tries) {
    if (tries == 2000) give_up("connecting");
    ::usleep(1000);
  }
}

HandClient::~HandClient() { ::close(socket_); }

ReceivedTicket HandClient::borrow(std::uint32_t offer) const {
  const Said message{Verb::borrow, offer};
  std::array<std::byte, ticket_size> bytes;
  if (::send(socket_, &message, sizeof message, MSG_NOSIGNAL) < 0) give_up("asking");
  if (::recv(socket_, bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) give_up("a ticket");
  auto ticket = ReceivedTicket::decode(bytes);
  if (!ticket) give_up("a ticket that is none");
  return *ticket;
}

void HandClient::imported(std::uint32_t offer) const {
  const Said message{Verb::imported, offer};
  if (::send(socket_, &message, sizeof message, MSG_NOSIGNAL) < 0) give_up("telling");
}

void HandClient::returned(std::uint32_t offer) const {
  const Said message{Verb::returned, offer};
  if (::send(socket_, &message, sizeof message, MSG_NOSIGNAL) < 0) give_up("telling");
}

}  // namespace devshare::bench
