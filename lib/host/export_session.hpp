// SPDX-License-Identifier: Apache-2.0
// All keys and tokens of one process between aclInit and aclFinalize, and what serves them: an endpoint with its random
// name, the control page, the service thread. Made by the first export.
#pragma once

#include "control_page.hpp"
#include "endpoint.hpp"
#include "key.hpp"
#include "peer_identity.hpp"
#include "server.hpp"
#include "sync_exports.hpp"
#include "token_table.hpp"
#include "whitelist.hpp"

#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

namespace devshare::host {

struct Export {
  KeyName name;
  std::uintptr_t address = 0;
  std::uint64_t size = 0;
  std::uint64_t block = 0;   // id of the block that was exported; 0: this slot is free
  std::uint64_t watch = 0;   // what the slot of the control page holds while the memory is there
  bool open_to_all = false;  // exported with pid validation disabled
  bool freed = false;        // a tombstone: its memory is gone, its name stays until it is closed
  Whitelist whitelist;
};

// Everything but construction and destruction happens under `mutex`; the service thread takes it for each answer.
class ExportSession final : public Answerer {
 public:
  // 0, or the errno of what the kernel refused.
  static int start(std::mutex& mutex, std::unique_ptr<ExportSession>* out);
  ~ExportSession();  // without the mutex: it waits for the service thread
  ExportSession(const ExportSession&) = delete;
  ExportSession& operator=(const ExportSession&) = delete;

  std::uint64_t endpoint() const noexcept { return endpoint_.name(); }

  // A new key; null when the process has as many as it can have.
  const Export* add(std::uintptr_t address, std::uint64_t size, std::uint64_t block, bool open_to_all, KeyForm form);
  Export* find(const KeyName& name) noexcept;
  void close(Export& key) noexcept;
  // Onto the list with those, who get it ahead if they are connected.
  void admit(Export& key, Whitelist&& admitted);
  void admit(TokenExport& token, Whitelist&& admitted);
  void end_token(std::uint64_t memory) noexcept;  // by the memory's id, if it has one
  void block_freed(std::uint64_t block) noexcept;
  void close_all() noexcept;
  std::uint64_t live_keys() const noexcept { return live_keys_; }

  TokenTable& tokens() noexcept { return tokens_; }
  NotifyExports& notifies() noexcept { return notifies_; }
  EventExports& events() noexcept { return events_; }

  ProcessDirectory& directory() noexcept { return directory_; }
  const std::shared_ptr<ControlPage>& page() const noexcept { return page_; }
  Server& server() noexcept { return *server_; }

  void close_descriptors() noexcept;  // in a forked child

  void service_begins() noexcept override { page_->hold_death_word(); }
  void service_ends() noexcept override { page_->release_death_word(); }
  Answer answer(const Request& request, const Peer& peer) override;

 private:
  explicit ExportSession(std::mutex& mutex) noexcept : mutex_(mutex) {}
  Answer answer_import(const Request& request, const Peer& peer);
  bool put_memory(const Export& key, Answer* answer) const;
  void put_memory(const TokenExport& token, Answer* answer) const;
  Answer answer_notify(const Request& request, const Peer& peer);
  Answer answer_event(const Request& request, std::unique_lock<std::mutex> lock);
  Answer answer_token(const Request& request, const Peer& peer, std::unique_lock<std::mutex> lock);

  std::mutex& mutex_;
  Endpoint endpoint_;
  std::shared_ptr<ControlPage> page_;
  std::deque<Export> slots_;
  std::vector<std::uint32_t> free_slots_;
  std::unordered_multimap<std::uint64_t, std::uint32_t> slots_of_block_;  // those that are not tombstones
  std::uint64_t live_keys_ = 0;
  TokenTable tokens_;
  NotifyExports notifies_;
  EventExports events_;
  ProcessDirectory directory_;
  std::unique_ptr<Server> server_;  // last: stopped before anything it uses goes
};

}  // namespace devshare::host
