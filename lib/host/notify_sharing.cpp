// SPDX-License-Identifier: Apache-2.0
// Notifies between processes: aclrtNotifyGetExportKey, SetImportPid, SetImportPidInterServer, ImportByKey.
#include "answers.hpp"
#include "calls.hpp"
#include "client.hpp"
#include "device.hpp"
#include "export_state.hpp"
#include "exports.hpp"
#include "failure.hpp"
#include "notifies.hpp"
#include "profile.hpp"
#include "stream_state.hpp"
#include "streams.hpp"
#include "token_calls.hpp"

#include <fmt/format.h>

#include <cstring>
#include <span>

namespace devshare::host {
namespace {

namespace code = acl::code;

KeyForm own_form() { return key_form(profile().product); }

// The export of a notify that its creator wants to admit somebody to; null after a refusal. Under the lock of the
// exports.
NotifyExport* export_to_change(ExportState& exports, acl::aclrtNotify notify, acl::aclError* refused) {
  StreamState& all = stream_state.get();
  std::unique_lock lock(all.mutex);
  const Notify* const found = all.notifies.find(notify);
  if (found == nullptr) {
    lock.unlock();
    *refused = refuse_unknown_notify(notify);
    return nullptr;
  }
  const Notify copy = *found;
  lock.unlock();
  if (copy.imported()) {
    *refused = refuse(code::rt_drv_internal, Reason::not_the_exporter,
                      "the notify was imported: only the process that exported it admits importers (R17)");
    return nullptr;
  }
  NotifyExport* const exported =
      copy.shared && exports.session != nullptr ? exports.session->notifies().find(copy.name) : nullptr;
  if (exported == nullptr) {
    *refused = refuse(code::rt_param_invalid, Reason::bad_argument,
                      "the notify has not been exported: aclrtNotifyGetExportKey first");
    return nullptr;
  }
  if (exported->open_to_all) {
    *refused = refuse(code::rt_no_permission, Reason::validation_disabled,
                      "the notify was exported without pid validation and admits everybody: no pids may be set (R13)");
    return nullptr;
  }
  return exported;
}

acl::aclError add_import(const KeyName& name, DeviceNumber device, acl::aclrtNotify* notify) {
  StreamState& all = stream_state.get();
  {
    const std::lock_guard lock(all.mutex);
    if (Notify* const made = all.notifies.make(most_notifies())) {
      made->device = device;
      made->shared = true;
      made->name = name;
      *notify = Numbered<Notify>::handle_of(*made);
      return code::success;
    }
  }
  return refuse_too_many_notifies();
}

}  // namespace

namespace calls {

aclError aclrtNotifyGetExportKey(aclrtNotify notify, char* key, std::size_t len, std::uint64_t flags) {
  if (notify == nullptr) return refuse_unknown_notify(notify);
  if (key == nullptr) return refuse_null("key");
  if (flags != notify_export::listed && flags != notify_export::disable_pid_validation) {
    return refuse(code::rt_param_invalid, Reason::bad_argument,
                  fmt::format("flags is {}: only 0 and 2 exist (R47)", flags));
  }
  DeviceNumber device;
  if (const aclError refused = current_device(&device)) return refused;
  if (len < ipc_key_size) {
    return refuse(code::rt_param_invalid, Reason::bad_argument,
                  fmt::format("len is {}: a key needs {} bytes", len, ipc_key_size));
  }
  ExportState& exports = export_state.get();
  const std::scoped_lock exports_lock(exports.mutex);
  StreamState& all = stream_state.get();
  std::unique_lock lock(all.mutex);
  Notify* const found = all.notifies.find(notify);
  if (found == nullptr || found->shared) {
    const bool imported = found != nullptr && found->imported();
    const bool unknown = found == nullptr;
    lock.unlock();
    if (unknown) return refuse_unknown_notify(notify);
    if (imported) return refuse_not_the_creator(code::rt_internal_error);
    return refuse(code::rt_internal_error, Reason::already_exported,
                  "the notify was exported before, and has that one key");
  }
  if (const aclError refused = need_session(exports)) return refused;
  NotifyExport* const made = exports.session->notifies().add(exports.session->endpoint(), own_form());
  if (made == nullptr) {
    return refuse(code::rt_resource_alloc_fail, Cause{.reason = Reason::key_limit, .available = most_keys},
                  fmt::format("this process has exported {} notifies, and that is all it can", most_keys));
  }
  made->bit = found->bit;
  made->device = found->device.physical;
  made->open_to_all = flags == notify_export::disable_pid_validation;
  found->shared = true;
  found->name = made->name;
  const KeyBytes bytes = encode_key(made->name, own_form());
  std::memcpy(key, bytes.data(), bytes.size());
  return code::success;
}

aclError aclrtNotifySetImportPid(aclrtNotify notify, std::int32_t* pid, std::size_t num) {
  if (notify == nullptr) return refuse_unknown_notify(notify);
  if (pid == nullptr) return refuse_null("pid");
  if (const aclError refused = check_pid_count(num)) return refused;
  DeviceNumber device;
  if (const aclError refused = current_device(&device)) return refused;
  ExportState& exports = export_state.get();
  const std::scoped_lock lock(exports.mutex);
  aclError refused = code::success;
  NotifyExport* const exported = export_to_change(exports, notify, &refused);
  if (exported == nullptr) return refused;
  Whitelist admitted;
  refused = admit_pids(*exports.session, exported->whitelist, std::span(pid, num), &admitted);
  if (refused == code::success) exported->whitelist.take_over(std::move(admitted));
  return refused;
}

// As with keys: nobody from another server is ever served, and what is left of this call is its checks.
aclError aclrtNotifySetImportPidInterServer(aclrtNotify notify, aclrtServerPid* serverPids, std::size_t num) {
  if (notify == nullptr) return refuse_unknown_notify(notify);
  if (serverPids == nullptr) return refuse_null("serverPids");
  if (const aclError refused = check_server_pids(std::span(serverPids, num))) return refused;
  DeviceNumber device;
  if (const aclError refused = current_device(&device)) return refused;
  if (!profile().supports(Entry::aclrtNotifySetImportPidInterServer)) {
    return refuse(code::rt_feature_not_support, Reason::unsupported,
                  fmt::format("{} is no part of a super-pod", product_name(profile().product)));
  }
  ExportState& exports = export_state.get();
  const std::scoped_lock lock(exports.mutex);
  aclError refused = code::success;
  static_cast<void>(export_to_change(exports, notify, &refused));
  return refused;
}

aclError aclrtNotifyImportByKey(aclrtNotify* notify, const char* key, std::uint64_t flags) {
  if (notify == nullptr) return refuse_null("notify");
  if (key == nullptr) return refuse_null("key");
  if (flags > 3) {
    return refuse(code::rt_param_invalid, Reason::bad_argument,
                  fmt::format("flags is {}: 0 and 2 are documented, and 0 to 3 accepted (R47)", flags));
  }
  DeviceNumber device;
  if (const aclError refused = current_device(&device)) return refused;
  if (const aclError refused = refuse_after_failed_task(device.physical)) return refused;
  const std::optional<KeyName> name = decode_key(key, own_form());
  if (!name) {
    return refuse(code::rt_drv_internal, Reason::unknown_key,
                  fmt::format("these bytes are no key of {}", product_name(profile().product)));
  }
  if (is_own_key(*name)) {
    return refuse(code::rt_drv_internal, Reason::own_key,
                  "this process exported the notify itself: what it has is what it exported");
  }
  Request request;
  request.op = Op::import_notify;
  request.key = *name;
  const Reply reply = ask_exporter(request).reply;
  if (reply.code != code::success) return refuse_answer(reply, Asked::notify);
  if (reply.device >= profile().device_count) {
    return refuse_answer({.code = code::rt_drv_internal, .reason = Reason::protocol}, Asked::notify);
  }
  if ((flags & notify_import::enable_peer_access) != 0) {
    if (const aclError refused = enable_peer_access_for_import(device.physical, reply.device)) return refused;
  }
  return add_import(*name, device, notify);
}

}  // namespace calls
}  // namespace devshare::host
