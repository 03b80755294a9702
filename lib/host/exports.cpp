// SPDX-License-Identifier: Apache-2.0
// The exporting calls: aclrtIpcMemGetExportKey, SetImportPid, ImportPidInterServer, SetAttr.
#include "exports.hpp"

#include "calls.hpp"
#include "device.hpp"
#include "export_state.hpp"
#include "failure.hpp"
#include "fork.hpp"
#include "profile.hpp"
#include "token_calls.hpp"

#include <fcntl.h>
#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <limits>
#include <span>
#include <utility>

namespace devshare::host {
namespace {

namespace code = acl::code;

KeyForm own_form() { return key_form(profile().product); }

// What the driver would not share. `pinned` is the block at `address`, or empty.
acl::aclError check_exportable(const PinnedBlock& pinned, std::uintptr_t address, std::size_t size) {
  const Profile& now = profile();
  if (!pinned) {
    return refuse(code::rt_drv_internal, Reason::not_device_memory,
                  "devPtr is no live device memory of this process (R10)");
  }
  if (pinned.origin() == Origin::imported) {
    return refuse(code::rt_drv_internal, Reason::imported_memory,
                  "devPtr was imported: only the process that allocated memory can export it (R12)");
  }
  if (pinned.origin() == Origin::mapped) {
    return refuse(code::rt_drv_internal, Reason::mapped_memory,
                  "devPtr is mapped from a physical handle: such memory has no key, share its handle (R12)");
  }
  if (pinned.origin() == Origin::registered) {
    return refuse(code::rt_drv_internal, Reason::not_device_memory,
                  "devPtr is the device's address of registered host memory, which has no key (R10)");
  }
  const std::uint64_t offset = address - pinned.base();
  if (offset != 0 && !(now.interior_export_allowed && offset % pinned.page_size() == 0)) {
    return refuse(code::rt_drv_internal, Reason::not_block_start,
                  fmt::format("devPtr lies {} bytes inside its allocation: export the allocation's start and send the "
                              "offset beside the key (R10)",
                              offset));
  }
  if (pinned.read_only()) {
    return refuse(code::rt_drv_internal, Reason::read_only, "devPtr was allocated read-only (R12)");
  }
  // The 950 looks at the allocation, older drivers at the pages that are there.
  const std::uint64_t whole = now.product == Product::p950 ? pinned.size() : pinned.backed();
  if (offset > whole || size > whole - offset) {
    return refuse(code::rt_drv_internal,
                  Cause{.reason = Reason::out_of_bounds, .needed = size, .available = whole - offset},
                  fmt::format("{} bytes are asked for and {} are there", size, whole - offset));
  }
  return code::success;
}

// The key behind the bytes that a caller hands in, if it is this process's to change; else a refusal is recorded.
// Under the lock.
Export* own_key_to_change(ExportState& all, const char* bytes, acl::aclError* refused) {
  const std::optional<KeyName> name = decode_key(bytes, own_form());
  if (!name) {
    *refused = refuse(code::rt_drv_internal, Reason::unknown_key, "these bytes are no key");
    return nullptr;
  }
  if (all.session == nullptr || name->endpoint != all.session->endpoint()) {
    *refused = refuse(code::rt_drv_internal, Reason::not_the_exporter,
                      "the key was not exported by this process: only its exporter admits importers (R17)");
    return nullptr;
  }
  Export* key = all.session->find(*name);
  if (key == nullptr || key->freed) {
    *refused =
        refuse(code::rt_drv_internal, Reason::unknown_key,
               key == nullptr ? "this process has no such key: it was closed" : "the memory of the key was freed");
    return nullptr;
  }
  if (key->open_to_all) {
    *refused = refuse(code::rt_no_permission, Reason::validation_disabled,
                      "the key was exported without pid validation and admits everybody: no pids may be set (R13)");
    return nullptr;
  }
  return key;
}

}  // namespace

bool exports_block_freed(std::uint64_t block_id) {
  ExportState* all = export_state.existing();
  if (all == nullptr) return false;
  const std::scoped_lock lock(all->mutex);
  if (all->session != nullptr) all->session->block_freed(block_id);
  return only_on_its_way(*all, {MemoryName::Of::block, block_id});
}

void exports_shut_down() {
  ExportState* all = export_state.existing();
  if (all == nullptr) return;
  std::unique_ptr<ExportSession> ended;
  {
    const std::scoped_lock lock(all->mutex);
    if (all->session != nullptr) {
      all->session->close_all();
      all->left_on_their_way = all->session->server().all_only_on_their_way();
    }
    ended = std::move(all->session);
  }
  // Here, without the lock: the service thread may be waiting for it.
}

ExportCounters export_counters() {
  ExportState* all = export_state.existing();
  if (all == nullptr) return {};
  const std::scoped_lock lock(all->mutex);
  if (all->session == nullptr) return {};
  return {all->session->live_keys(), all->session->server().connections()};
}

bool is_own_key(const KeyName& name) {
  ExportState* all = export_state.existing();
  if (all == nullptr) return false;
  const std::scoped_lock lock(all->mutex);
  return all->session != nullptr && all->session->endpoint() == name.endpoint;
}

acl::aclError open_own_key(const KeyName& name, SharedBytes* out) {
  ExportState& all = export_state.get();
  const std::scoped_lock lock(all.mutex);
  const Export* key = all.session != nullptr ? all.session->find(name) : nullptr;
  if (key == nullptr || key->freed) {
    return refuse(code::rt_drv_internal, Reason::unknown_key,
                  key == nullptr ? "this process has no such key: it was closed" : "the memory of the key was freed");
  }
  if (!key->open_to_all && profile().product != Product::p950) {
    return refuse(code::rt_drv_internal, Reason::own_key,
                  "this process exported the key itself, and an exporter is never on its own list");
  }
  const PinnedBlock pinned(reinterpret_cast<const void*>(key->address));
  if (!pinned || pinned.id() != key->block) {
    return refuse(code::rt_drv_internal, Reason::unknown_key, "the memory of the key is being freed");
  }
  ImportedBytes& bytes = out->bytes;
  bytes.descriptor = UniqueFd(::fcntl(pinned.descriptor(), F_DUPFD_CLOEXEC, 0));
  if (!bytes.descriptor) return refuse_export_descriptors(errno);
  bytes.offset = key->address - pinned.base();
  bytes.size = key->size;
  bytes.page_size = pinned.page_size();
  bytes.device = pinned.device();
  bytes.read_only = pinned.read_only();
  bytes.sealed = pinned.sealed();
  bytes.page_bytes = pinned.page_bytes();
  bytes.watch = all.session->page()->watch(key->name.slot, key->watch);
  all.session->server().memory_taken({MemoryName::Of::block, key->block});
  out->p2p_policy = pinned.p2p();
  out->keeper = all.session->page();
  return code::success;
}

bool close_own_key(const KeyName& name) {
  ExportState* all = export_state.existing();
  if (all == nullptr) return false;
  const std::scoped_lock lock(all->mutex);
  Export* key = all->session != nullptr ? all->session->find(name) : nullptr;
  if (key == nullptr) return false;
  all->session->close(*key);
  return true;
}

namespace calls {

aclError aclrtIpcMemGetExportKey(void* devPtr, std::size_t size, char* key, std::size_t len, std::uint64_t flags) {
  if (devPtr == nullptr) return refuse_null("devPtr");
  if (key == nullptr) return refuse_null("key");
  if (size == 0) return refuse(code::rt_param_invalid, Reason::bad_argument, "size is 0");
  if (len == 0) return refuse(code::rt_param_invalid, Reason::bad_argument, "len is 0");
  if (flags > ipc_export::disable_pid_validation) {
    return refuse(code::rt_param_invalid, Reason::bad_argument, fmt::format("flags is {}: only 0 and 1 exist", flags));
  }
  DeviceNumber device;
  if (const aclError refused = current_device(&device)) return refused;
  if (len < ipc_key_size) {
    return refuse(code::rt_param_invalid, Reason::bad_argument,
                  fmt::format("len is {}: a key needs {} bytes (R11)", len, ipc_key_size));
  }
  // Pinned until the key stands, so that aclrtFree in another thread comes before it or after it.
  const PinnedBlock pinned(devPtr);
  const auto address = reinterpret_cast<std::uintptr_t>(devPtr);
  if (const aclError refused = check_exportable(pinned, address, size)) return refused;

  ExportState& all = export_state.get();
  const std::scoped_lock lock(all.mutex);
  if (const aclError refused = need_session(all)) return refused;
  const Export* made =
      all.session->add(address, size, pinned.id(), flags == ipc_export::disable_pid_validation, own_form());
  if (made == nullptr) {
    return refuse(code::rt_resource_alloc_fail, Cause{.reason = Reason::key_limit, .available = most_keys},
                  fmt::format("this process has {} keys, and that is all it can have: close some", most_keys));
  }
  const KeyBytes bytes = encode_key(made->name, own_form());
  std::memcpy(key, bytes.data(), bytes.size());
  return code::success;
}

aclError aclrtIpcMemSetImportPid(const char* key, std::int32_t* pid, std::size_t num) {
  if (key == nullptr) return refuse_null("key");
  if (pid == nullptr) return refuse_null("pid");
  if (const aclError refused = check_pid_count(num)) return refused;
  DeviceNumber device;
  if (const aclError refused = current_device(&device)) return refused;

  ExportState& all = export_state.get();
  const std::scoped_lock lock(all.mutex);
  aclError refused = code::success;
  Export* exported = own_key_to_change(all, key, &refused);
  if (exported == nullptr) return refused;

  Whitelist admitted;
  refused = admit_pids(*all.session, exported->whitelist, std::span(pid, num), &admitted);
  if (refused == code::success) all.session->admit(*exported, std::move(admitted));
  return refused;
}

// Keys are known on their own server only, so nobody from another one is ever served: what is left of this call is its
// checks.
aclError aclrtIpcMemImportPidInterServer(const char* key, aclrtServerPid* serverPids, std::size_t num) {
  if (key == nullptr) return refuse_null("key");
  if (serverPids == nullptr) return refuse_null("serverPids");
  if (const aclError refused = check_server_pids(std::span(serverPids, num))) return refused;
  DeviceNumber device;
  if (const aclError refused = current_device(&device)) return refused;
  if (!profile().supports(Entry::aclrtIpcMemImportPidInterServer)) {
    return refuse(code::rt_feature_not_support, Reason::unsupported,
                  fmt::format("{} is no part of a super-pod", product_name(profile().product)));
  }
  ExportState& all = export_state.get();
  const std::scoped_lock lock(all.mutex);
  aclError refused = code::success;
  static_cast<void>(own_key_to_change(all, key, &refused));
  return refused;
}

// There is one way between two devices of the host runtime. The choice is checked and changes nothing.
aclError aclrtIpcMemSetAttr(const char* key, aclrtIpcMemAttrType type, std::uint64_t attr) {
  if (key == nullptr) return refuse_null("key");
  if (type != ipc_attr::access_link) {
    return refuse(code::rt_param_invalid, Reason::bad_argument, fmt::format("there is no attribute {}", type));
  }
  if (attr > ipc_attr::link_ub_multi_port) {
    return refuse(code::rt_param_invalid, Reason::bad_argument, fmt::format("there is no link {}", attr));
  }
  DeviceNumber device;
  if (const aclError refused = current_device(&device)) return refused;
  const Product product = profile().product;
  if (!profile().supports(Entry::aclrtIpcMemSetAttr)) {
    return refuse(code::rt_feature_not_support, Reason::unsupported,
                  fmt::format("{} has no links to choose from", product_name(product)));
  }
  const bool between_ports = attr >= ipc_attr::link_ub_one_port;
  if (between_ports != (product == Product::p950)) {
    return refuse(code::rt_link_type_not_supported, Reason::unsupported,
                  fmt::format("{} has no link {}", product_name(product), attr));
  }
  const std::optional<KeyName> name = decode_key(key, own_form());
  if (!name) return refuse(code::rt_drv_internal, Reason::unknown_key, "these bytes are no key");
  if (product == Product::p950) return code::success;  // the importer's choice, for its next import of the key
  ExportState& all = export_state.get();
  const std::scoped_lock lock(all.mutex);
  if (all.session == nullptr || all.session->find(*name) == nullptr) {
    return refuse(code::rt_drv_internal, Reason::not_the_exporter, "this process has exported no such key");
  }
  return code::success;
}

}  // namespace calls

namespace {
Server* forking_server = nullptr;  // between prepare and parent or child
}

void exports_before_fork() { export_state.before_fork(); }
void exports_after_fork_in_parent() { export_state.after_fork_in_parent(); }
void exports_after_fork_in_child() { export_state.after_fork_in_child(); }

// After exports_before_fork, whose lock keeps the session where it is.
void server_before_fork() {
  ExportState* all = export_state.existing();
  forking_server = all != nullptr && all->session != nullptr ? &all->session->server() : nullptr;
  if (forking_server != nullptr) forking_server->lock();
}
void server_after_fork_in_parent() {
  if (forking_server != nullptr) forking_server->unlock();
}
void server_after_fork_in_child() {
  if (forking_server != nullptr) forking_server->unlock();
}

}  // namespace devshare::host
