// SPDX-License-Identifier: Apache-2.0
// What a program writes by hand where it does not lend: a server that hands out tickets over a socket and counts who has
// what, and its client. Nothing is checked but what the runtime checks; what a message says is believed.
#pragma once

#include <devshare/ticket.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace devshare::bench {

// Serves tickets on an abstract name until the process ends. Every client may have every ticket: they are admitted
// beforehand.
void serve_by_hand(const std::string& name, std::vector<TicketBytes> tickets);

class HandClient {
 public:
  explicit HandClient(const std::string& name);
  ~HandClient();
  HandClient(const HandClient&) = delete;
  HandClient& operator=(const HandClient&) = delete;

  ReceivedTicket borrow(std::uint32_t offer) const;
  void imported(std::uint32_t offer) const;
  void returned(std::uint32_t offer) const;

 private:
  int socket_;
};

}  // namespace devshare::bench
