// SPDX-License-Identifier: Apache-2.0
// The importer's connections, one for each exporting process, and what is given up when there are no descriptors left.
#pragma once

#include "control_page.hpp"
#include "unique_fd.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace devshare::host {

// One exporting process. Used by one thread at a time: `busy` is that, and not a lock, because a thread may be in it
// for as long as the deadline, and fork waits for locks.
struct Connection {
  UniqueFd socket;
  std::uint32_t sequence = 0;
  std::shared_ptr<const ControlPageView> page;
  bool sends_ahead = true;  // whether it is worth looking before asking: the last look or answer told
  bool busy = false;
};

// The connection to an endpoint, for this thread alone; null when another thread kept it beyond the deadline.
std::shared_ptr<Connection> acquire_connection(std::uint64_t endpoint, std::chrono::steady_clock::time_point deadline);
void release_connection(std::uint64_t endpoint, const std::shared_ptr<Connection>& connection);

// Gives a connection that the caller has acquired a new socket. 0 or an errno.
int give_socket(Connection& connection);

// Closes idle connections whose exporter has ended.
void close_dead_connections();

// When the descriptor table is full: gives up what can be had again, cheapest first. False when there is nothing.
bool free_a_descriptor();

}  // namespace devshare::host
