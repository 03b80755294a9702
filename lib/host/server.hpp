// SPDX-License-Identifier: Apache-2.0
// The service thread of an exporting process: accepts importers, asks the kernel who they are, hands each request to
// an answerer and sends its reply. It sleeps in epoll without a time limit, so an idle exporter costs nothing.
//
// Nothing a peer does can hold it up: sends never block (who does not read is dropped), and whatever is not a request
// of ours closes that peer's connection and no other.
#pragma once

#include "block.hpp"
#include "peer_identity.hpp"
#include "unique_fd.hpp"
#include "whitelist.hpp"
#include "wire.hpp"

#include <pthread.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

namespace devshare::host {

// Connections are capped here and at a quarter of the descriptor limit; the newcomer is refused, nobody is dropped.
inline constexpr std::size_t most_connections = 1024;

// Unread by one importer, of what was sent to it before it asked.
inline constexpr std::size_t most_ahead = 8;

// Which memory, so that the end of one can be told from that of all others of this process.
struct MemoryName {
  enum class Of : std::uint8_t { block, physical };
  Of of = Of::block;
  std::uint64_t id = 0;

  bool operator==(const MemoryName&) const = default;
};
struct HashOfMemoryName {
  std::size_t operator()(const MemoryName& name) const noexcept {
    return static_cast<std::size_t>(name.id * 2 + static_cast<std::uint64_t>(name.of));
  }
};

// A reply and what must stay as it is until it is sent.
struct Answer {
  Reply reply;
  int descriptor = -1;
  MemoryName name;                    // of what memory that is
  PinnedBlock memory;                 // whose descriptor that is, if it is a block's
  std::unique_lock<std::mutex> lock;  // under which it stays open, if it is a handle's
};

class Answerer {
 public:
  virtual void service_begins() noexcept = 0;  // on the service thread, before the first answer
  virtual void service_ends() noexcept = 0;    // on the service thread, after the last one
  virtual Answer answer(const Request& request, const Peer& peer) = 0;

 protected:
  ~Answerer() = default;
};

class Server {
 public:
  // Serves a listening socket until destroyed; the socket and the answerer outlive the server. 0 or an errno.
  static int start(int listener, Answerer& answerer, std::unique_ptr<Server>* out);
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  std::size_t connections() const noexcept { return connection_count_.load(std::memory_order_relaxed); }

  // Sends memory to those on the list that are connected, before they ask for it: who imports it then waits for nobody.
  // A favour and no promise: nothing is sent to who has left enough of it unread.
  void send_ahead(const Answer& answer, const Whitelist& admitted);

  // Somebody has the memory from now on, who was not sent it ahead: by an answer, or this process itself.
  void memory_taken(const MemoryName& memory);

  // Memory ends. True when it was sent ahead and nobody has it: then only messages keep its bytes, which cannot be taken
  // back. Not when somebody may have it and another has not looked.
  bool only_on_its_way(const MemoryName& memory);
  std::vector<MemoryName> all_only_on_their_way();

  // Around fork. In the child the service thread does not exist: its descriptors are closed and nothing else is done.
  void lock() { mutex_.lock(); }
  void unlock() { mutex_.unlock(); }
  void close_descriptors() noexcept;

 private:
  struct Connection {
    UniqueFd socket;
    Peer peer;
    bool greeted = false;  // it has said hello, and so:
    std::int32_t claimed_pid = 0;
    std::uint8_t server = 0;        // where it is
    std::vector<MemoryName> ahead;  // sent, in this order, and not known to be read
  };

  Server(int listener, Answerer& answerer) noexcept : listener_(listener), answerer_(answerer) {}
  int open();
  static void* thread_main(void* server);
  void run();
  void accept_all();
  int accept_into_spare();
  void greet(int socket);
  bool serve(int socket, const Peer& peer);
  void remember_hello(int socket, const Request& hello);
  void note_request(int socket);
  void forget_what_was_read(Connection& connection);
  void forget_first(Connection& connection, std::size_t count);
  static std::size_t most_ahead_of_all() noexcept;
  static std::size_t measure_message() noexcept;
  void drop(int socket);
  bool watch(int descriptor, std::uint32_t events) noexcept;

  const int listener_;
  Answerer& answerer_;
  UniqueFd epoll_;
  UniqueFd wake_;         // written once, to stop
  UniqueFd spare_;        // given up for a moment to turn a newcomer away when the descriptor table is full
  bool stalled_ = false;  // newcomers are waiting for a descriptor
  std::mutex mutex_;      // the connections; held across accept, so that fork sees every socket
  std::unordered_map<int, Connection> connections_;  // which there are the service thread alone changes
  std::size_t ahead_ = 0;                            // of all connections
  const std::size_t most_ahead_of_all_ = most_ahead_of_all();
  const std::size_t message_bytes_ = measure_message();  // 0: unknown, and nothing is sent ahead

  // Of memory that was sent ahead or asked for, until it ends.
  struct Given {
    std::uint32_t unread = 0;  // messages
    bool taken = false;        // one was read, perhaps, or an import was answered
  };
  std::unordered_map<MemoryName, Given, HashOfMemoryName> given_;
  std::atomic<std::size_t> connection_count_{0};
  pthread_t thread_{};
  bool running_ = false;
};

}  // namespace devshare::host
