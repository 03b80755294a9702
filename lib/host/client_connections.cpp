// SPDX-License-Identifier: Apache-2.0
#include "client_connections.hpp"

#include "block.hpp"
#include "client.hpp"
#include "endpoint.hpp"
#include "fork.hpp"
#include "per_process.hpp"
#include "profile.hpp"

#include <poll.h>

#include <cerrno>
#include <condition_variable>
#include <unordered_map>
#include <vector>

namespace devshare::host {
namespace {

struct Connections : ProcessState<Connections> {
  std::unordered_map<std::uint64_t, std::shared_ptr<Connection>> by_endpoint;
  std::condition_variable one_is_free;

  void close_inherited() noexcept {
    for (auto& [endpoint, connection] : by_endpoint) connection->socket = UniqueFd();
  }
};

PerProcess<Connections> connections;

// Connections whose exporter has ended, or only one idle connection when `any` is asked for. The count of those closed.
std::size_t close_idle_connections(bool any) {
  Connections& all = connections.get();
  const std::scoped_lock lock(all.mutex);
  std::vector<pollfd> idle;
  std::vector<std::uint64_t> endpoints;
  for (const auto& [endpoint, connection] : all.by_endpoint) {
    if (connection->busy) continue;
    idle.push_back({connection->socket.get(), POLLIN, 0});
    endpoints.push_back(endpoint);
  }
  if (idle.empty()) return 0;
  std::size_t closed = 0;
  if (!any && ::poll(idle.data(), idle.size(), 0) <= 0) return 0;
  for (std::size_t i = 0; i < idle.size() && !(any && closed == 1); ++i) {
    if (any || (idle[i].revents & ~POLLIN) != 0) closed += all.by_endpoint.erase(endpoints[i]);
  }
  return closed;
}

}  // namespace

std::shared_ptr<Connection> acquire_connection(std::uint64_t endpoint, std::chrono::steady_clock::time_point deadline) {
  Connections& all = connections.get();
  std::unique_lock lock(all.mutex);
  while (true) {
    std::shared_ptr<Connection>& found = all.by_endpoint[endpoint];
    if (found == nullptr) found = std::make_shared<Connection>();
    if (!found->busy) {
      found->busy = true;
      return found;
    }
    if (all.one_is_free.wait_until(lock, deadline) == std::cv_status::timeout) return nullptr;
  }
}

void release_connection(std::uint64_t endpoint, const std::shared_ptr<Connection>& connection) {
  Connections& all = connections.get();
  {
    const std::scoped_lock lock(all.mutex);
    connection->busy = false;
    if (!connection->socket) all.by_endpoint.erase(endpoint);
  }
  all.one_is_free.notify_all();
}

int give_socket(Connection& connection) {
  Connections& all = connections.get();
  const std::scoped_lock lock(all.mutex);  // so that fork finds every socket
  connection.socket = new_client_socket(profile().exporter_deadline_ms);
  return connection.socket ? 0 : errno;
}

void close_dead_connections() { static_cast<void>(close_idle_connections(false)); }

bool free_a_descriptor() {
  return close_idle_connections(false) != 0 || release_cold_descriptor() || close_idle_connections(true) != 0;
}

std::size_t client_connections() {
  Connections* all = connections.existing();
  if (all == nullptr) return 0;
  const std::scoped_lock lock(all->mutex);
  return all->by_endpoint.size();
}

void client_shut_down() {
  Connections* all = connections.existing();
  if (all == nullptr) return;
  const std::scoped_lock lock(all->mutex);
  all->by_endpoint.clear();  // no call is in flight
}

void client_before_fork() { connections.before_fork(); }
void client_after_fork_in_parent() { connections.after_fork_in_parent(); }
void client_after_fork_in_child() { connections.after_fork_in_child(); }

}  // namespace devshare::host
