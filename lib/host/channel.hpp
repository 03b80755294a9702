// SPDX-License-Identifier: Apache-2.0
// One message of a SEQPACKET socket with at most one descriptor, checked for everything the kernel can say about it.
#pragma once

#include "unique_fd.hpp"

#include <cstddef>
#include <cstdint>
#include <span>

namespace devshare::host {

// Sends one message; `descriptor` may be -1. `flags` as for sendmsg, MSG_NOSIGNAL is added. Returns 0 or the errno.
int send_message(int socket, std::span<const std::uint8_t> bytes, int descriptor, int flags) noexcept;

struct Received {
  enum class Outcome : std::uint8_t {
    message,
    nothing,          // none yet on a non-blocking socket, none in time on one with a time limit
    interrupted,      // by a signal handler
    closed,           // the other side is gone
    descriptor_lost,  // the message came, its descriptor did not: this process's table is full
    intruder,         // longer than agreed, or descriptors that were not agreed on; they are closed again
  };
  Outcome outcome = Outcome::closed;
  std::size_t size = 0;
  UniqueFd descriptor;
};

// Receives one message into `buffer`. Descriptors are created with CLOEXEC (B066). Without `descriptor_wanted` a peer
// cannot put any into this process.
Received receive_message(int socket, std::span<std::uint8_t> buffer, bool descriptor_wanted, int flags) noexcept;

}  // namespace devshare::host
