// SPDX-License-Identifier: Apache-2.0
// Connections between lender and borrower: records over Unix sockets, and who the kernel says is at the other end.
#pragma once

#include "../host/unique_fd.hpp"
#include "message.hpp"

#include <devshare/allow.hpp>
#include <devshare/deadline.hpp>
#include <devshare/endpoint.hpp>
#include <devshare/result.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include <sys/socket.h>
#include <sys/un.h>

namespace devshare::detail {

using host::UniqueFd;

// The process that sent the first message of a connection, which need not be the one that made the socket.
struct Sender {
  PeerProcess peer;
  UniqueFd process;    // a pidfd; none where the kernel has none to give
  bool known = false;  // the kernel said who it is
  bool no_room = false;  // there was no descriptor left for its process
};

struct Address {
  sockaddr_un name{};
  socklen_t size = 0;
};
Address address_of(const Endpoint& endpoint) noexcept;

// A socket that is closed on exec and never blocks.
Result<UniqueFd> new_socket(Operation operation) noexcept;

// Whether a descriptor is a Unix socket that keeps records apart, and whether it listens.
bool is_record_socket(int fd) noexcept;
bool is_listening(int fd) noexcept;

// Sends one record without waiting. 0, or the errno: EAGAIN when the other side reads nothing.
int send_record(int fd, std::span<const std::byte> bytes) noexcept;
// The same with the sender's credentials, which the kernel checks. The first message of each side.
int send_introduction(int fd, std::span<const std::byte> bytes) noexcept;

enum class Received : std::uint8_t { record, nothing, closed, too_long };

struct Record {
  std::array<std::byte, longest_message + 1> storage;
  std::size_t size = 0;
  std::span<const std::byte> bytes() const noexcept { return {storage.data(), size}; }
};

// Takes one record without waiting. Descriptors that come with it are closed.
Received receive_record(int fd, Record& record) noexcept;

// From ask_who_sends() on the kernel says who sends, also on the connections of a listening socket;
// receive_introduction() takes one record and that, and ends it.
void ask_who_sends(int fd) noexcept;
Received receive_introduction(int fd, Record& record, Sender& sender) noexcept;

// Opens a descriptor of the sender's process by its pid. False, and `no_room` where there is no descriptor for it.
bool find_process(Sender& sender) noexcept;

// Whether a policy says yes. One that throws has not.
bool permits(const Allow& allow, const PeerProcess& peer) noexcept;

// What a failed system call of a socket means.
Error socket_error(Operation operation, int system_errno) noexcept;

// Waits until one of the descriptors can be read (or the first be written, if that is waited for as well), or the deadline
// has passed. A second descriptor of -1 is none. Whether one can.
bool wait_readable(int fd, int other, Deadline deadline, bool or_writable = false) noexcept;

}  // namespace devshare::detail
