// SPDX-License-Identifier: Apache-2.0
// The exporting calls of the handle path: aclrtMemExportToShareableHandle, aclrtMemSetPidToShareableHandle and their
// second versions.
#include "token_exports.hpp"

#include "answers.hpp"
#include "calls.hpp"
#include "device.hpp"
#include "export_state.hpp"
#include "failure.hpp"
#include "ledger.hpp"
#include "profile.hpp"
#include "token_calls.hpp"

#include <fcntl.h>
#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

namespace devshare::host {
namespace {

namespace code = acl::code;

acl::aclError refuse_flags(std::uint64_t flags) {
  return refuse(code::rt_param_invalid, Reason::bad_argument, fmt::format("flags is {}: only 0 and 1 exist", flags));
}

// Under the lock: whether the memory may have a token now.
acl::aclError check_token_free(const TokenTable& tokens, const PhysicalMemory& memory) {
  if (tokens.of_memory(memory.id) != nullptr) {
    return refuse(code::rt_drv_internal, Reason::already_exported,
                  "the handle has a token already, and one is all it can have: send that one (R27)");
  }
  if (tokens.full()) {
    return refuse(code::rt_memory_allocation, Cause{.reason = Reason::key_limit, .available = most_tokens},
                  fmt::format("this process has given {} tokens, and that is all it can give in a session: aclFinalize "
                              "and aclInit begin another",
                              most_tokens));
  }
  return code::success;
}

acl::aclError export_handle(acl::aclrtDrvMemHandle handle, std::uint64_t flags, TokenKind kind, FabricToken* out) {
  const Physical memory = physical_of(handle);  // before the lock, which the end of a memory takes
  if (memory == nullptr) return refuse_handle(handle);
  if (memory->origin != HandleOrigin::allocated) {
    return refuse(code::rt_drv_internal, Reason::imported_memory,
                  "the handle was imported: only the process that allocated memory can export it (R26)");
  }
  ExportState& all = export_state.get();
  std::unique_lock lock(all.mutex);
  if (const acl::aclError refused = need_session(all)) return refused;
  if (const acl::aclError refused = check_token_free(all.session->tokens(), *memory)) return refused;
  // It may be held by others from now on, and must count once. Without the lock: the state file may be another's for a
  // while, and those who are served must not wait for that.
  if (!memory->in_host_memory()) {
    lock.unlock();
    if (const acl::aclError refused = ledger_share(memory->device, memory->file(), memory->size)) return refused;
    lock.lock();
    if (const acl::aclError refused = check_token_free(all.session->tokens(), *memory)) return refused;
  }
  const bool open_to_all = flags == acl::vmm_export::disable_pid_validation;
  *out = {all.session->tokens().add(all.session->endpoint(), kind, *memory, open_to_all).name, profile().server};
  return code::success;
}

acl::aclError check_pids(const std::int32_t* pids, std::size_t count) {
  if (pids == nullptr) return refuse_null("pid");
  if (count == 0) return refuse(code::invalid_param, Reason::bad_argument, "pidNum is 0");
  if (count <= acl::max_handle_pids_per_call) return code::success;
  return refuse(
      code::rt_param_invalid,
      Cause{.reason = Reason::too_many_pids, .needed = count, .available = acl::max_handle_pids_per_call},
      fmt::format("{} pids in one call: {} at most, call again for the others", count, acl::max_handle_pids_per_call));
}

acl::aclError admit_to_own(ExportSession& session, TokenExport* token, TokenKind kind,
                           std::span<const std::int32_t> pids) {
  if (token == nullptr) return refuse_answer(refused_token(Reason::unknown_key), Asked::token);
  if (token->kind != kind) return refuse_answer(refused_token(Reason::wrong_token_kind, token->kind), Asked::token);
  if (token->open_to_all) {
    return refuse(code::rt_no_permission, Reason::validation_disabled,
                  "the handle was exported without pid validation and admits everybody: no pids may be set (R41)");
  }
  std::vector<std::int32_t> somebody(pids.begin(), pids.end());
  std::erase(somebody, 0);  // nobody
  Whitelist admitted;
  if (!admitted.admit(somebody, session.directory())) return refuse_export_descriptors(EMFILE);
  session.admit(*token, std::move(admitted));
  return code::success;
}

acl::aclError admit(const KeyName& name, TokenKind kind, std::span<const std::int32_t> pids) {
  {
    ExportState& all = export_state.get();
    const std::scoped_lock lock(all.mutex);
    if (all.session != nullptr && all.session->endpoint() == name.endpoint) {
      return admit_to_own(*all.session, all.session->tokens().find(name), kind, pids);
    }
  }
  // Whether there is such a token only its exporter knows. It refuses either way.
  Request request;
  request.op = Op::admit;
  request.key = name;
  request.kind = kind;
  return refuse_answer(as_token_refusal(ask_exporter(request).reply), Asked::token);
}

}  // namespace

void token_of_memory_ends(std::uint64_t memory_id) {
  ExportState* all = export_state.existing();
  if (all == nullptr) return;
  const std::scoped_lock lock(all->mutex);
  if (all->session != nullptr) all->session->end_token(memory_id);
}

bool shared_memory_ends(std::uint64_t memory_id) {
  ExportState* all = export_state.existing();
  if (all == nullptr) return false;
  const std::scoped_lock lock(all->mutex);
  if (all->session != nullptr) all->session->end_token(memory_id);
  return only_on_its_way(*all, {MemoryName::Of::physical, memory_id});
}

std::uint64_t tokens_exported() {
  ExportState* all = export_state.existing();
  if (all == nullptr) return 0;
  const std::scoped_lock lock(all->mutex);
  return all->session != nullptr ? all->session->tokens().size() : 0;
}

void describe_memory(const PhysicalMemory& memory, Reply* reply) noexcept {
  reply->code = code::success;
  reply->reason = Reason::none;
  reply->device = memory.device;
  reply->p2p_policy = memory.p2p;
  reply->unsealed = !memory.sealed;
  reply->size = memory.size;
  reply->page_size = memory.page_size;
  reply->attribute = memory.property.memAttr;
  reply->location_type = memory.property.location.type;
  reply->location_id = memory.property.location.id;
}

std::optional<Fetched> open_own_token(const KeyName& name, TokenKind kind) {
  ExportState* all = export_state.existing();
  if (all == nullptr) return std::nullopt;
  const std::scoped_lock lock(all->mutex);
  if (all->session == nullptr || all->session->endpoint() != name.endpoint) return std::nullopt;
  const auto refused = [](const Reply& reply) { return Fetched{reply, UniqueFd(), nullptr}; };
  const TokenExport* token = all->session->tokens().find(name);
  if (token == nullptr) return refused(refused_token(Reason::unknown_key));
  if (token->kind != kind) return refused(refused_token(Reason::wrong_token_kind, token->kind));
  if (profile().product != Product::p950) return refused(refused_token(Reason::own_key));
  Fetched fetched;
  describe_memory(*token->memory, &fetched.reply);
  fetched.reply.op = Op::import_handle;
  fetched.reply.server = profile().server;
  fetched.descriptor = UniqueFd(::fcntl(token->memory->descriptor.get(), F_DUPFD_CLOEXEC, 0));
  if (!fetched.descriptor) return refused(refused_token(Reason::descriptor_limit));
  all->session->server().memory_taken({MemoryName::Of::physical, token->memory->id});
  return fetched;
}

namespace calls {

aclError aclrtMemExportToShareableHandle(aclrtDrvMemHandle handle, aclrtMemHandleType handleType, std::uint64_t flags,
                                         std::uint64_t* shareableHandle) {
  if (handle == nullptr) return refuse_null("handle");
  if (shareableHandle == nullptr) return refuse_null("shareableHandle");
  if (handleType != mem_handle_type::none) {
    return refuse(code::invalid_param, Reason::bad_argument,
                  fmt::format("handleType is {}, only 0 is accepted", handleType));
  }
  if (flags > vmm_export::disable_pid_validation) return refuse_flags(flags);
  DeviceNumber device;
  if (const aclError refused = current_device(&device)) return refused;
  FabricToken token;
  if (const aclError refused = export_handle(handle, flags, TokenKind::v1, &token)) return refused;
  *shareableHandle = encode_token(token.name);
  return code::success;
}

aclError aclrtMemExportToShareableHandleV2(aclrtDrvMemHandle handle, std::uint64_t flags,
                                           aclrtMemSharedHandleType shareType, void* shareableHandle) {
  if (handle == nullptr) return refuse_null("handle");
  if (shareableHandle == nullptr) return refuse_null("shareableHandle");
  if (flags > vmm_export::disable_pid_validation) return refuse_flags(flags);
  TokenKind kind{};
  if (const aclError refused = kind_of_share(shareType, &kind)) return refused;
  FabricToken token;
  if (const aclError refused = export_handle(handle, flags, kind, &token)) return refused;
  if (kind == TokenKind::fabric) {
    const aclrtMemFabricHandle bytes = encode_fabric(token);
    std::memcpy(shareableHandle, bytes.data, sizeof bytes.data);
  } else {
    const std::uint64_t number = encode_token(token.name);
    std::memcpy(shareableHandle, &number, sizeof number);
  }
  return code::success;
}

aclError aclrtMemSetPidToShareableHandle(std::uint64_t shareableHandle, std::int32_t* pid, std::size_t pidNum) {
  if (const aclError refused = check_pids(pid, pidNum)) return refused;
  DeviceNumber device;
  if (const aclError refused = current_device(&device)) return refused;
  return admit(decode_token(shareableHandle), TokenKind::v1, {pid, pidNum});
}

aclError aclrtMemSetPidToShareableHandleV2(void* shareableHandle, aclrtMemSharedHandleType shareType, std::int32_t* pid,
                                           std::size_t pidNum) {
  if (shareableHandle == nullptr) return refuse_null("shareableHandle");
  if (const aclError refused = check_pids(pid, pidNum)) return refused;
  TokenKind kind{};
  if (const aclError refused = kind_of_share(shareType, &kind)) return refused;
  KeyName name;
  if (const aclError refused = read_token(shareableHandle, kind, &name)) return refused;
  return admit(name, kind, {pid, pidNum});
}

}  // namespace calls
}  // namespace devshare::host
