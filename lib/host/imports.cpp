// SPDX-License-Identifier: Apache-2.0
// The importing calls: aclrtIpcMemImportByKey, and aclrtIpcMemClose, which ends imports and exports alike.
#include "imports.hpp"

#include "answers.hpp"
#include "block.hpp"
#include "calls.hpp"
#include "client.hpp"
#include "device.hpp"
#include "exports.hpp"
#include "failure.hpp"
#include "fork.hpp"
#include "key.hpp"
#include "page_wish.hpp"
#include "peer_identity.hpp"
#include "per_process.hpp"
#include "profile.hpp"
#include "reading.hpp"
#include "streams.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <condition_variable>
#include <cstddef>
#include <cstring>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace devshare::host {
namespace {

namespace code = acl::code;

// One address that a key was opened at.
struct Opened {
  void* address = nullptr;
  DeviceNumber device;           // that it was opened on
  std::uint64_t references = 1;  // one close each
  ExporterWatch watch;
  std::shared_ptr<const void> keeper;  // of what the watch points to
};

// What became of an import that one thread was making while others waited for it (B076).
struct Outcome {
  bool known = false;
  DeviceNumber device;
  std::uint64_t flags = 0;
  acl::aclError code = 0;
  Cause cause;
  std::string text;
};

struct Entry {
  std::vector<Opened> opened;  // in order; one at most but on 950, where every import has an address of its own
  bool attempted = false;            // one thread is importing it; the entry stays
  std::shared_ptr<Outcome> awaited;  // made by the first thread that waits for that one
};

struct HashOfName {
  std::size_t operator()(const KeyName& name) const noexcept {
    std::size_t hash = 0;
    std::memcpy(&hash, name.secret.data(), sizeof hash);  // random already
    return hash ^ name.slot;
  }
};

struct State : ProcessState<State> {
  std::unordered_map<KeyName, Entry, HashOfName> entries;
  std::condition_variable attempt_done;

  void close_inherited() noexcept {}
};

PerProcess<State> state;

acl::aclError fetch_foreign_key(const KeyName& name, SharedBytes* out) {
  if (name.slot >= most_keys) {
    return refuse_answer({.code = code::rt_drv_internal, .reason = Reason::unknown_key}, Asked::key);
  }
  Request request;
  request.op = Op::import_memory;
  request.key = name;
  Fetched fetched = ask_exporter(request);
  const Reply& reply = fetched.reply;
  if (reply.code != code::success) return refuse_answer(reply, Asked::key);
  const std::uint64_t page_bytes = checked_pages(reply, fetched.descriptor);
  if (page_bytes == 0 || reply.device >= profile().device_count) {
    return refuse_answer({.code = code::rt_drv_internal, .reason = Reason::protocol}, Asked::key);
  }
  ImportedBytes& bytes = out->bytes;
  bytes.descriptor = std::move(fetched.descriptor);
  bytes.offset = reply.offset;
  bytes.size = reply.size;
  bytes.page_size = reply.page_size;
  bytes.device = reply.device;
  bytes.read_only = keep_for_reading(&bytes.descriptor) || reply.read_only;
  bytes.sealed = !reply.unsealed;
  bytes.page_bytes = page_bytes;
  bytes.watch = fetched.page->watch(name.slot, reply.watch, profile().exporter_death_invalidates);
  out->p2p_policy = reply.p2p_policy;
  out->keeper = std::move(fetched.page);
  return code::success;
}

// R19, R43, R45.
acl::aclError check_peer_access(const SharedBytes& shared, const DeviceNumber& local, std::uint64_t flags) {
  const std::int32_t owner = shared.bytes.device;
  if (owner == local.physical) return code::success;
  const Cause between{.reason = Reason::peer_access_missing, .device = local.user, .peer_device = user_number(owner)};
  if (profile().cross_device_needs_p2p_memory && !shared.p2p_policy) {
    Cause cause = between;
    cause.reason = Reason::p2p_policy_missing;
    return refuse(code::rt_drv_internal, cause,
                  "on this product only memory of a P2P policy, such as ACL_MEM_MALLOC_HUGE_FIRST_P2P, reaches another "
                  "device (R43)");
  }
  if (flags == acl::ipc_import::enable_peer_access) return enable_peer_access_for_import(local.physical, owner);
  if (peer_access_effective(local.physical, owner)) return code::success;
  return refuse(code::rt_drv_internal, between,
                fmt::format("the memory is on physical device {} and this thread's device is {}: import with the "
                            "peer-access flag, or enable peer access both ways first (R19)",
                            owner, local.physical));
}

acl::aclError open_key(const KeyName& name, const DeviceNumber& local, std::uint64_t flags, Opened* out) {
  SharedBytes shared;
  if (const acl::aclError refused = is_own_key(name) ? open_own_key(name, &shared) : fetch_foreign_key(name, &shared)) {
    return refused;
  }
  if (const acl::aclError refused = check_peer_access(shared, local, flags)) return refused;
  shared.bytes.local_device = local.physical;
  shared.bytes.populate = page_wish().populate;
  out->device = local;
  out->watch = shared.bytes.watch;
  out->keeper = std::move(shared.keeper);
  return adopt_import(std::move(shared.bytes), &out->address);
}

// Once more what is open already: no system call, no word with the exporter.
acl::aclError open_again(Opened& opened, const DeviceNumber& local) {
  if (opened.device.physical != local.physical) {
    return refuse(
        code::rt_drv_internal,
        Cause{.reason = Reason::on_other_device, .device = local.user, .peer_device = opened.device.user},
        fmt::format("this process has the key open on device {}: close it there first (R25)", opened.device.user));
  }
  if (opened.watch.gone()) {
    return refuse(code::rt_drv_internal, Reason::exporter_gone,
                  "the exporter no longer has the memory; what is open here ends with its closes (R18, R20)");
  }
  ++opened.references;
  return code::success;
}

// The first import of a key works outside the lock, the others wait for its outcome. A failure is theirs too when they
// asked for the same: to try in turn would only multiply the deadline.
acl::aclError import_counted(const KeyName& name, const DeviceNumber& local, std::uint64_t flags, void** address) {
  State& all = state.get();
  std::unique_lock lock(all.mutex);
  Entry* entry = nullptr;
  while (true) {
    entry = &all.entries[name];
    if (!entry->opened.empty()) {
      const acl::aclError refused = open_again(entry->opened.back(), local);
      if (refused == code::success) *address = entry->opened.back().address;
      return refused;
    }
    if (!entry->attempted) break;
    if (entry->awaited == nullptr) entry->awaited = std::make_shared<Outcome>();
    const std::shared_ptr<Outcome> outcome = entry->awaited;
    all.attempt_done.wait(lock, [&] { return outcome->known; });
    if (outcome->code != code::success && outcome->flags == flags && outcome->device.physical == local.physical) {
      return refuse(outcome->code, outcome->cause, outcome->text);
    }
  }
  entry->attempted = true;
  lock.unlock();

  Opened opened;
  const acl::aclError refused = open_key(name, local, flags, &opened);

  lock.lock();
  entry->attempted = false;
  const std::shared_ptr<Outcome> outcome = std::move(entry->awaited);
  if (outcome != nullptr) *outcome = {true, local, flags, refused, last_cause(), last_text()};
  if (refused == code::success) {
    *address = opened.address;
    entry->opened.push_back(std::move(opened));
  } else {
    all.entries.erase(name);
  }
  lock.unlock();
  if (outcome != nullptr) all.attempt_done.notify_all();
  return refused;
}

// 950: every import is one of its own.
acl::aclError import_anew(const KeyName& name, const DeviceNumber& local, std::uint64_t flags, void** address) {
  Opened opened;
  if (const acl::aclError refused = open_key(name, local, flags, &opened)) return refused;
  *address = opened.address;
  State& all = state.get();
  const std::scoped_lock lock(all.mutex);
  all.entries[name].opened.push_back(std::move(opened));
  return code::success;
}

enum class Closed : std::uint8_t { yes, in_use, not_imported };

// Takes one reference off the newest import of a key; the last one not from under a task in a stream (R5).
Closed close_import(const KeyName& name) {
  State* all = state.existing();
  if (all == nullptr) return Closed::not_imported;
  Opened ended;
  Block* retired = nullptr;
  {
    const std::scoped_lock lock(all->mutex);
    const auto found = all->entries.find(name);
    if (found == all->entries.end() || found->second.opened.empty()) return Closed::not_imported;
    std::vector<Opened>& opened = found->second.opened;
    if (opened.back().references == 1 && !retire_import(opened.back().address, &retired)) return Closed::in_use;
    if (--opened.back().references > 0) return Closed::yes;
    ended = std::move(opened.back());
    opened.pop_back();
    if (opened.empty() && !found->second.attempted) all->entries.erase(found);
  }
  end_retired_import(retired);  // may wait for copies in flight; the watch they look at lives until after it
  return Closed::yes;
}

}  // namespace

void imports_shut_down() {
  if (State* all = state.existing(); all != nullptr) {
    std::unordered_map<KeyName, Entry, HashOfName> ended;
    {
      const std::scoped_lock lock(all->mutex);
      ended.swap(all->entries);
    }
    for (auto& [name, entry] : ended) {
      for (Opened& opened : entry.opened) release_import(opened.address);
    }
  }
  client_shut_down();
}

ImportCounters import_counters() {
  ImportCounters counters;
  counters.connections = client_connections();
  State* all = state.existing();
  if (all == nullptr) return counters;
  const std::scoped_lock lock(all->mutex);
  for (const auto& [name, entry] : all->entries) {
    if (!entry.opened.empty()) ++counters.keys;
    for (const Opened& opened : entry.opened) counters.references += opened.references;
  }
  return counters;
}

void imports_before_fork() { state.before_fork(); }
void imports_after_fork_in_parent() { state.after_fork_in_parent(); }
void imports_after_fork_in_child() { state.after_fork_in_child(); }

namespace calls {

aclError aclrtIpcMemImportByKey(void** devPtr, const char* key, std::uint64_t flags) {
  if (devPtr == nullptr) return refuse(code::invalid_param, Reason::bad_argument, "devPtr is a null pointer");
  if (key == nullptr) return refuse(code::invalid_param, Reason::bad_argument, "key is a null pointer");
  if (flags > ipc_import::enable_peer_access) {
    return refuse(code::rt_param_invalid, Reason::bad_argument, fmt::format("flags is {}: only 0 and 1 exist", flags));
  }
  DeviceNumber device;
  if (const aclError refused = current_device(&device)) return refused;
  if (const aclError refused = refuse_after_failed_task(device.physical)) return refused;
  const Product product = profile().product;
  const std::optional<KeyName> name = decode_key(key, key_form(product));
  if (!name) {
    return refuse(code::rt_drv_internal, Reason::unknown_key,
                  fmt::format("these bytes are no key of {}", product_name(product)));
  }
  return product == Product::p950 ? import_anew(*name, device, flags, devPtr)
                                  : import_counted(*name, device, flags, devPtr);
}

aclError aclrtIpcMemClose(const char* key) {
  if (key == nullptr) return refuse(code::invalid_param, Reason::bad_argument, "key is a null pointer");
  DeviceNumber device;
  if (const aclError refused = current_device(&device)) return refused;
  const Product product = profile().product;
  const std::optional<KeyName> name = decode_key(key, key_form(product));
  if (!name) {
    return refuse(code::rt_drv_internal, Reason::unknown_key,
                  fmt::format("these bytes are no key of {}", product_name(product)));
  }
  // A process that did both closes twice: its import first, its export then.
  switch (close_import(*name)) {
    case Closed::yes:
      return code::success;
    case Closed::in_use:
      return refuse(code::rt_drv_internal, Reason::in_use,
                    "a task that is still in a stream uses the imported memory: synchronise the stream first (R5)");
    case Closed::not_imported:
      break;
  }
  if (close_own_key(*name)) return code::success;
  if (is_own_key(*name)) {
    return refuse(code::rt_drv_internal, Reason::unknown_key, "this process has no such key: it was closed");
  }
  return refuse(product == Product::p950 ? code::rt_no_permission : code::rt_drv_internal, Reason::not_imported,
                "this process has no import of the key left, and only its exporter can end the key (R24)");
}

}  // namespace calls

}  // namespace devshare::host
