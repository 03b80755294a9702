// SPDX-License-Identifier: Apache-2.0
#include "export_session.hpp"

#include "admission.hpp"
#include "notifies.hpp"
#include "profile.hpp"
#include "token_exports.hpp"

#include <devshare/acl/codes.hpp>

#include <utility>

namespace devshare::host {

using detail::Reason;

int ExportSession::start(std::mutex& mutex, std::unique_ptr<ExportSession>* out) {
  std::unique_ptr<ExportSession> session(new ExportSession(mutex));
  if (const int error = session->endpoint_.open(profile().socket_directory)) return error;
  std::unique_ptr<ControlPage> page;
  if (const int error = ControlPage::create(session->endpoint_.name(), &page)) return error;
  session->page_ = std::move(page);
  if (const int error = Server::start(session->endpoint_.socket(), *session, &session->server_)) return error;
  *out = std::move(session);
  return 0;
}

ExportSession::~ExportSession() = default;

const Export* ExportSession::add(std::uintptr_t address, std::uint64_t size, std::uint64_t block, bool open_to_all,
                                 KeyForm form) {
  std::uint32_t slot = 0;
  if (!free_slots_.empty()) {
    slot = free_slots_.back();
    free_slots_.pop_back();
  } else {
    if (slots_.size() == most_keys) return nullptr;
    slot = static_cast<std::uint32_t>(slots_.size());
    slots_.emplace_back();
  }
  Export& key = slots_[slot];
  key.name = new_key_name(endpoint_.name(), slot, form);
  key.address = address;
  key.size = size;
  key.block = block;
  key.watch = page_->turn_on(slot);
  key.open_to_all = open_to_all;
  slots_of_block_.emplace(block, slot);
  ++live_keys_;
  return &key;
}

Export* ExportSession::find(const KeyName& name) noexcept {
  if (name.endpoint != endpoint_.name() || name.slot >= slots_.size()) return nullptr;
  Export& key = slots_[name.slot];
  return key.block != 0 && same_secret(key.name, name) ? &key : nullptr;
}

void ExportSession::close(Export& key) noexcept {
  const std::uint32_t slot = key.name.slot;
  if (!key.freed) {
    page_->turn_off(slot);
    --live_keys_;
    const auto [first, last] = slots_of_block_.equal_range(key.block);
    for (auto at = first; at != last; ++at) {
      if (at->second != slot) continue;
      slots_of_block_.erase(at);
      break;
    }
  }
  key = Export{};
  free_slots_.push_back(slot);
}

void ExportSession::block_freed(std::uint64_t block) noexcept {
  const auto [first, last] = slots_of_block_.equal_range(block);
  for (auto at = first; at != last; ++at) {
    page_->turn_off(at->second);
    slots_[at->second].freed = true;
    --live_keys_;
  }
  slots_of_block_.erase(first, last);
}

void ExportSession::close_all() noexcept {
  for (Export& key : slots_) {
    if (key.block != 0) close(key);
  }
  tokens_.for_each([&](const TokenExport& token) { page_->token_ends(token.name.slot); });
  tokens_.end_all();
}

void ExportSession::close_descriptors() noexcept {
  endpoint_.close_descriptor();
  page_->close_descriptor();
  server_->close_descriptors();
  directory_.close_descriptors();
  events_.for_each([](EventExport& each) {
    if (each.moment != nullptr) each.moment->close_descriptor();
  });
}

Answer ExportSession::answer(const Request& request, const Peer& peer) {
  std::unique_lock lock(mutex_);
  if (request.op == Op::import_memory) return answer_import(request, peer);
  if (request.op == Op::import_notify || request.op == Op::record_notify) return answer_notify(request, peer);
  if (request.op == Op::import_event) return answer_event(request, std::move(lock));
  if (request.op != Op::hello) return answer_token(request, peer, std::move(lock));
  Answer answer;
  answer.reply.op = request.op;
  answer.reply.sequence = request.sequence;
  answer.reply.server = profile().server;
  answer.reply.watch = endpoint_.name();
  answer.descriptor = page_->descriptor();
  return answer;
}

Answer ExportSession::answer_import(const Request& request, const Peer& peer) {
  Answer answer;
  Reply& reply = answer.reply;
  reply.op = request.op;
  reply.sequence = request.sequence;
  reply.server = profile().server;
  reply.code = acl::code::rt_drv_internal;  // all refusals look alike to an importer that only has the code

  if (request.server != profile().server) {
    reply.reason = Reason::other_server;
    return answer;
  }
  const Export* key = find(request.key);
  if (key == nullptr || key->freed) {
    reply.reason = Reason::unknown_key;
    return answer;
  }
  if (!key->open_to_all && !admits(key->whitelist, request, peer, &reply)) return answer;
  if (put_memory(*key, &answer)) {
    server_->memory_taken(answer.name);
  } else {
    reply.reason = Reason::unknown_key;
  }
  return answer;
}

// False when the memory is being freed at this moment.
bool ExportSession::put_memory(const Export& key, Answer* answer) const {
  PinnedBlock memory(reinterpret_cast<const void*>(key.address));
  if (!memory || memory.id() != key.block) return false;
  Reply& reply = answer->reply;
  reply.code = acl::code::success;
  reply.device = memory.device();
  reply.read_only = memory.read_only();
  reply.p2p_policy = memory.p2p();
  reply.unsealed = !memory.sealed();
  reply.watch = key.watch;
  reply.offset = key.address - memory.base();
  reply.size = key.size;
  reply.page_size = memory.page_size();
  answer->descriptor = memory.descriptor();
  answer->name = {MemoryName::Of::block, key.block};
  answer->memory = std::move(memory);
  return true;
}

void ExportSession::put_memory(const TokenExport& token, Answer* answer) const {
  describe_memory(*token.memory, &answer->reply);
  answer->reply.watch = page_->token_word(token.name.slot);
  answer->descriptor = token.memory->descriptor.get();
  answer->name = {MemoryName::Of::physical, token.memory->id};
}

void ExportSession::admit(Export& key, Whitelist&& admitted) {
  Answer ahead;
  ahead.reply.op = Op::import_memory;
  ahead.reply.server = profile().server;
  ahead.reply.key = key.name;
  if (server_->connections() != 0 && put_memory(key, &ahead)) server_->send_ahead(ahead, admitted);
  key.whitelist.take_over(std::move(admitted));
}

void ExportSession::admit(TokenExport& token, Whitelist&& admitted) {
  if (server_->connections() != 0) {
    Answer ahead;
    ahead.reply.op = Op::import_handle;
    ahead.reply.server = profile().server;
    ahead.reply.key = token.name;
    ahead.reply.kind = token.kind;
    put_memory(token, &ahead);
    server_->send_ahead(ahead, admitted);
  }
  token.whitelist.take_over(std::move(admitted));
}

void ExportSession::end_token(std::uint64_t memory) noexcept {
  if (const TokenExport* const token = tokens_.of_memory(memory)) page_->token_ends(token->name.slot);
  tokens_.end(memory);
}

// Who may import may record. What was destroyed by its creator is still there for those who have it.
Answer ExportSession::answer_notify(const Request& request, const Peer& peer) {
  Answer answer;
  Reply& reply = answer.reply;
  reply.op = request.op;
  reply.sequence = request.sequence;
  reply.server = profile().server;
  reply.code = acl::code::rt_drv_internal;

  if (request.server != profile().server) {
    reply.reason = Reason::other_server;
    return answer;
  }
  const NotifyExport* notify = notifies_.find(request.key);
  if (notify == nullptr || (notify->bit == nullptr && request.op == Op::import_notify)) {
    reply.reason = Reason::unknown_key;
    return answer;
  }
  if (!notify->open_to_all && !admits(notify->whitelist, request, peer, &reply)) return answer;
  if (request.op == Op::record_notify && notify->bit != nullptr) record_from_outside(*notify->bit);
  reply.code = acl::code::success;
  reply.device = notify->device;
  return answer;
}

// Whoever has the handle may open the event. The lock goes with the answer, which is sent before the page may end.
Answer ExportSession::answer_event(const Request& request, std::unique_lock<std::mutex> lock) {
  Answer answer;
  Reply& reply = answer.reply;
  reply.op = request.op;
  reply.sequence = request.sequence;
  reply.server = profile().server;
  reply.code = acl::code::rt_drv_internal;

  if (request.server != profile().server) {
    reply.reason = Reason::other_server;
    return answer;
  }
  const EventExport* const event = events_.find(request.key);
  if (event == nullptr || event->moment == nullptr) {
    reply.reason = Reason::unknown_key;
    return answer;
  }
  reply.code = acl::code::success;
  reply.device = event->device;
  reply.size = SharedMoment::bytes;
  reply.page_size = SharedMoment::bytes;
  reply.unsealed = !event->moment->sealed();
  answer.descriptor = event->moment->descriptor();
  answer.lock = std::move(lock);
  return answer;
}

// An import, or a process that takes itself for the exporter. The lock goes with the answer: a free that comes now
// waits for the moment that it takes to send it, and afterwards the memory is gone, with nothing on its way here.
Answer ExportSession::answer_token(const Request& request, const Peer& peer, std::unique_lock<std::mutex> lock) {
  Answer answer;
  Reply& reply = answer.reply;
  reply.op = request.op;
  reply.sequence = request.sequence;
  reply.server = profile().server;
  reply.code = acl::code::rt_drv_internal;

  if (request.kind != TokenKind::fabric && request.server != profile().server) {
    reply.reason = Reason::other_server;
    return answer;
  }
  const TokenExport* token = tokens_.find(request.key);
  if (token == nullptr) {
    reply.reason = Reason::unknown_key;
    return answer;
  }
  if (token->kind != request.kind) {
    reply.reason = Reason::wrong_token_kind;
    reply.kind = token->kind;
    return answer;
  }
  if (request.op == Op::admit) {
    reply.reason = Reason::not_the_exporter;
    return answer;
  }
  if (!token->open_to_all && !admits(token->whitelist, request, peer, &reply)) return answer;
  put_memory(*token, &answer);
  server_->memory_taken(answer.name);
  answer.lock = std::move(lock);
  return answer;
}

}  // namespace devshare::host
