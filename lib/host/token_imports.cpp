// SPDX-License-Identifier: Apache-2.0
// The importing calls of the handle path: aclrtMemImportFromShareableHandle and its second version.
#include "token_imports.hpp"

#include "answers.hpp"
#include "calls.hpp"
#include "client.hpp"
#include "device.hpp"
#include "failure.hpp"
#include "fork.hpp"
#include "page_wish.hpp"
#include "per_process.hpp"
#include "physical.hpp"
#include "profile.hpp"
#include "reading.hpp"
#include "streams.hpp"
#include "token_calls.hpp"
#include "token_exports.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <condition_variable>
#include <cstddef>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <utility>

namespace devshare::host {
namespace {

namespace code = acl::code;

struct Entry {
  std::weak_ptr<const PhysicalMemory> memory;  // gone when the handle was freed for good: then it may come again
  bool attempted = false;                      // one thread is importing it; the entry stays
};

struct HashOfName {
  std::size_t operator()(const KeyName& name) const noexcept {
    return static_cast<std::size_t>(name.endpoint << 24 ^ name.slot);  // random already
  }
};

struct State : ProcessState<State> {
  std::unordered_map<KeyName, Entry, HashOfName> entries;
  std::size_t crowded = 64;  // that many entries, and those whose memory is gone are looked for
  std::condition_variable attempt_done;

  void close_inherited() noexcept {}
};

PerProcess<State> state;

struct Wanted {
  KeyName name;
  TokenKind kind = TokenKind::v1;
  DeviceNumber device;  // on which it is opened
};

Fetched fetch(const Wanted& wanted) {
  if (std::optional<Fetched> own = open_own_token(wanted.name, wanted.kind)) return *std::move(own);
  Request request;
  request.op = Op::import_handle;
  request.key = wanted.name;
  request.kind = wanted.kind;
  return ask_exporter(request);
}

// R34: both ways, as an import by key with flag 1. What comes over the fabric is reached without.
acl::aclError open_peer_access(const Reply& reply, const DeviceNumber& local) {
  if (reply.device < 0 || reply.server != profile().server) return code::success;
  if (profile().cross_device_needs_p2p_memory && reply.device != local.physical && !reply.p2p_policy) {
    const Cause cause{.reason = Reason::p2p_policy_missing, .device = local.user, .peer_device = user_number(reply.device)};
    return refuse(code::rt_drv_internal, cause,
                  "on this product only memory of a P2P attribute, such as ACL_MEM_P2P_HUGE, reaches another device (R43)");
  }
  return enable_peer_access_for_import(local.physical, reply.device);
}

PhysicalImport describe(const Reply& reply, const Wanted& wanted) {
  PhysicalImport import;
  import.sealed = !reply.unsealed;
  import.size = reply.size;
  import.page_size = reply.page_size;
  import.property.memAttr = reply.attribute;
  import.property.location = {reply.location_id, reply.location_type};
  import.p2p = reply.p2p_policy;
  import.origin = wanted.kind == TokenKind::v1 ? HandleOrigin::imported_v1 : HandleOrigin::imported_v2;
  import.local_device = wanted.device.physical;
  import.device = reply.device;
  if (reply.device < 0) return import;
  if (reply.server != profile().server) {
    // Another server's devices have no numbers here. Its memory counts there, and here belongs where it was opened.
    import.device = wanted.device.physical;
    import.elsewhere = true;
  }
  // A device that this process does not see has its physical number.
  const std::int32_t user = user_number(import.device);
  import.property.location.id = static_cast<std::uint32_t>(user >= 0 ? user : import.device);
  return import;
}

acl::aclError import_memory(const Wanted& wanted, Physical* out) {
  Fetched fetched = fetch(wanted);
  const Reply reply = as_token_refusal(fetched.reply);
  if (reply.code != code::success) {
    if (reply.reason != Reason::own_key) return refuse_answer(reply, Asked::token);
    return refuse(reply.code, Reason::own_key,
                  "this process exported the token itself: what it has is the handle that it exported (R28)");
  }
  const bool device_exists = reply.server != profile().server || reply.device < profile().device_count;
  std::uint64_t file = 0;
  const std::uint64_t page_bytes = checked_pages(reply, fetched.descriptor, &file);
  if (page_bytes == 0 || !device_exists) {
    return refuse_answer(refused_token(Reason::protocol), Asked::token);
  }
  if (const acl::aclError refused = open_peer_access(reply, wanted.device)) return refused;
  PhysicalImport import = describe(reply, wanted);
  import.file = file;
  import.page_bytes = page_bytes;
  import.populate = page_wish().populate;
  import.read_only = keep_for_reading(&fetched.descriptor);
  import.descriptor = std::move(fetched.descriptor);
  return adopt_physical(std::move(import), out);
}

// Once more what is imported already. False when it has ended at this moment.
bool import_again(const PhysicalMemory& memory, acl::aclrtDrvMemHandle* handle, acl::aclError* result) {
  if (!profile().handle_reimport_counts) {
    *result = refuse(code::rt_drv_internal, Reason::already_imported,
                     "this process has the token imported: use that handle, or free it first (R27)");
    return true;
  }
  const acl::aclrtDrvMemHandle counted = retain_handle(memory);
  if (counted == nullptr) return false;
  *handle = counted;
  *result = code::success;
  return true;
}

// Under the lock.
void forget_ended(State& all) {
  if (all.entries.size() < all.crowded) return;
  std::erase_if(all.entries,
                [](const auto& entry) { return !entry.second.attempted && entry.second.memory.expired(); });
  all.crowded = std::max<std::size_t>(64, 2 * all.entries.size());
}

// One thread imports a token at a time, without the lock; others wait for what becomes of it (B076).
acl::aclError import_token(const Wanted& wanted, acl::aclrtDrvMemHandle* handle) {
  State& all = state.get();
  Physical memory;  // outlives the lock: it may be the last to let go
  std::unique_lock lock(all.mutex);
  forget_ended(all);
  while (true) {
    Entry& entry = all.entries[wanted.name];
    if (entry.attempted) {
      all.attempt_done.wait(lock);
      continue;
    }
    memory = entry.memory.lock();
    acl::aclError result = code::success;
    if (memory != nullptr && import_again(*memory, handle, &result)) return result;
    entry.attempted = true;
    break;
  }
  lock.unlock();

  memory = nullptr;
  const acl::aclError refused = import_memory(wanted, &memory);
  if (refused == code::success) *handle = add_handle(memory);

  lock.lock();
  if (refused == code::success) {
    all.entries[wanted.name] = {memory, false};
  } else {
    all.entries.erase(wanted.name);
  }
  lock.unlock();
  all.attempt_done.notify_all();
  return refused;
}

}  // namespace

void token_imports_shut_down() {
  State* all = state.existing();
  if (all == nullptr) return;
  const std::scoped_lock lock(all->mutex);
  all->entries.clear();
}

std::uint64_t handles_imported() {
  State* all = state.existing();
  if (all == nullptr) return 0;
  const std::scoped_lock lock(all->mutex);
  return static_cast<std::uint64_t>(std::count_if(all->entries.begin(), all->entries.end(),
                                                  [](const auto& entry) { return !entry.second.memory.expired(); }));
}

void token_imports_before_fork() { state.before_fork(); }
void token_imports_after_fork_in_parent() { state.after_fork_in_parent(); }
void token_imports_after_fork_in_child() { state.after_fork_in_child(); }

namespace calls {

aclError aclrtMemImportFromShareableHandle(std::uint64_t shareableHandle, std::int32_t deviceId,
                                           aclrtDrvMemHandle* handle) {
  if (handle == nullptr) return refuse_null("handle");
  DeviceNumber current;
  if (const aclError refused = current_device(&current)) return refused;
  Wanted wanted;
  if (const aclError refused = find_device(deviceId, &wanted.device)) return refused;  // R33
  if (const aclError refused = refuse_after_failed_task(wanted.device.physical)) return refused;
  wanted.name = decode_token(shareableHandle);
  return import_token(wanted, handle);
}

aclError aclrtMemImportFromShareableHandleV2(void* shareableHandle, aclrtMemSharedHandleType shareType,
                                             std::uint64_t flags, aclrtDrvMemHandle* handle) {
  if (shareableHandle == nullptr) return refuse_null("shareableHandle");
  if (handle == nullptr) return refuse_null("handle");
  if (flags != 0) {
    return refuse(code::invalid_param, Reason::bad_argument, fmt::format("flags is {}, must be 0 (R32)", flags));
  }
  Wanted wanted;
  if (const aclError refused = kind_of_share(shareType, &wanted.kind)) return refused;
  if (const aclError refused = current_device(&wanted.device)) return refused;
  if (const aclError refused = refuse_after_failed_task(wanted.device.physical)) return refused;
  if (const aclError refused = read_token(shareableHandle, wanted.kind, &wanted.name)) return refused;
  return import_token(wanted, handle);
}

}  // namespace calls
}  // namespace devshare::host
