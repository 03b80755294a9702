// SPDX-License-Identifier: Apache-2.0
// From a code to the kind of a failure. Where the runtime gives a reason, the reason decides; otherwise operation and
// code do, and 507899 without a reason stays `refused`: the causes by operation are in explain.cpp.
#include "runtime_state.hpp"

#include <devshare/copy.hpp>
#include <devshare/memory.hpp>

namespace devshare::detail {

Errc kind_of(Reason reason) noexcept {
  switch (reason) {
    case Reason::none: return Errc::refused;
    case Reason::not_initialised: return Errc::runtime_gone;
    case Reason::forked: return Errc::forked;
    case Reason::no_context: return Errc::no_device_context;
    case Reason::bad_argument: return Errc::invalid_argument;
    case Reason::no_such_device: return Errc::no_such_device;
    case Reason::unsupported: return Errc::unsupported_by_runtime;
    case Reason::injected: return Errc::refused;
    case Reason::capacity: return Errc::out_of_memory;
    case Reason::no_space: return Errc::no_space;
    case Reason::descriptor_limit: return Errc::fd_limit;
    case Reason::mapping_limit: return Errc::mapping_limit;
    case Reason::address_space: return Errc::address_space_exhausted;
    case Reason::backend_unavailable: return Errc::backend_unavailable;
    case Reason::not_device_memory: return Errc::invalid_argument;
    case Reason::not_block_start:
    case Reason::imported_memory:
    case Reason::read_only: return Errc::not_exportable;
    case Reason::out_of_bounds: return Errc::out_of_range;
    case Reason::cross_device_copy: return Errc::cross_device_copy;
    case Reason::in_use: return Errc::in_use;
    case Reason::unknown_key: return Errc::stale_token;
    case Reason::exporter_gone: return Errc::exporter_gone;
    case Reason::not_admitted:
    case Reason::admitted_too_early: return Errc::not_authorised;
    case Reason::validation_disabled: return Errc::validation_disabled;
    case Reason::not_the_exporter: return Errc::not_the_exporter;
    case Reason::too_many_pids: return Errc::invalid_argument;
    case Reason::own_key: return Errc::self_import;
    case Reason::on_other_device: return Errc::already_imported;
    case Reason::peer_access_missing: return Errc::peer_access_missing;
    case Reason::peer_access_limit: return Errc::peer_access_limit;
    case Reason::peer_impossible: return Errc::peer_access_impossible;
    case Reason::not_imported: return Errc::stale_token;
    case Reason::user_refused: return Errc::not_authorised;
    case Reason::timed_out: return Errc::timed_out;
    case Reason::protocol: return Errc::refused;
    case Reason::key_limit: return Errc::refused;
    case Reason::foreign_pid_namespace: return Errc::not_authorised;
    case Reason::p2p_policy_missing: return Errc::peer_access_missing;
    case Reason::bad_switch: return Errc::bad_switch;
    case Reason::already_exported: return Errc::already_exported_as;
    case Reason::already_imported: return Errc::already_imported;
    case Reason::wrong_token_kind: return Errc::mechanism_mismatch;
    case Reason::other_server: return Errc::stale_token;
    case Reason::unknown_handle: return Errc::invalid_argument;
    case Reason::mapped_memory: return Errc::not_exportable;
    case Reason::not_reserved:
    case Reason::already_mapped: return Errc::invalid_argument;
    case Reason::mixed_memory: return Errc::mixed_memory;
    case Reason::no_access: return Errc::refused;
    case Reason::unknown_stream:
    case Reason::unknown_event:
    case Reason::unknown_notify: return Errc::invalid_argument;
    case Reason::other_device: return Errc::wrong_device;
    case Reason::resource_limit: return Errc::resource_limit;
    case Reason::earlier_task_failed: return Errc::refused;
    case Reason::not_happened: return Errc::not_ready;
    case Reason::shared_event: return Errc::invalid_argument;
    case Reason::not_the_creator: return Errc::not_the_exporter;
  }
  return Errc::refused;
}

namespace {

Errc kind_of(Operation operation, acl::aclError code) noexcept {
  switch (code) {
    case acl::code::invalid_param:
    case acl::code::rt_param_invalid: return Errc::invalid_argument;
    case acl::code::uninitialize:
    case acl::code::repeat_finalize: return Errc::runtime_gone;
    case acl::code::rt_invalid_deviceid:
    case acl::code::invalid_device: return Errc::no_such_device;
    case acl::code::rt_context_null: return Errc::no_device_context;
    case acl::code::rt_feature_not_support:
    case acl::code::api_not_support:
    case acl::code::feature_unsupported: return Errc::unsupported_by_runtime;
    case acl::code::rt_no_permission:
      return operation == Operation::admit ? Errc::validation_disabled : Errc::not_authorised;
    case acl::code::bad_alloc:
    case acl::code::rt_memory_allocation:
    case acl::code::rt_device_oom:
      return operation == Operation::enable_peer_access ? Errc::peer_access_limit : Errc::out_of_memory;
    case acl::code::rt_no_device: return Errc::no_such_device;
    case acl::code::rt_invalid_handle:
      return operation == Operation::import_handle || operation == Operation::admit ? Errc::stale_token : Errc::refused;
    case acl::code::rt_stream_context: return Errc::wrong_device;
    case acl::code::rt_no_event_resource:
    case acl::code::rt_no_stream_resource:
    case acl::code::rt_no_notify_resource: return Errc::resource_limit;
    case acl::code::rt_stream_sync_timeout:
    case acl::code::rt_event_sync_timeout:
    case acl::code::rt_wait_timeout: return Errc::timed_out;
    case acl::code::host_memory_already_registered: return Errc::already_registered;
    case acl::code::rt_drv_internal:
      return operation == Operation::export_key ? Errc::not_exportable : Errc::refused;
    default: return Errc::refused;
  }
}

// Whether the runtime can say why. Code 0: the call succeeded and gave nothing usable, as aclrtDeviceGetBareTgid may.
bool says_why(const RuntimeRecord& record, acl::aclError code) noexcept {
  return record.extras.last_cause != nullptr && code != 0;
}

// What the host runtime says of its own refusals goes into the error. Apart from the callers, so that a refusal
// without a cause pays nothing for it.
[[gnu::noinline]] Error refusal_with_cause(const RuntimeRecord& record, Operation operation, acl::Entry entry,
                                           acl::aclError code, const Detail& detail) noexcept {
  const Cause& cause = record.extras.last_cause();
  Detail full = detail;
  if (cause.system_errno != 0) full.system_errno = cause.system_errno;
  if (cause.pid != 0) full.pid = cause.pid;
  if (cause.peer_device >= 0) full.peer_device = cause.peer_device;
  if (cause.needed != 0 || cause.available != 0) {
    full.needed = cause.needed;
    full.available = cause.available;
  }
  return Error(operation, entry, code, cause.reason, full);
}

template <class T>
[[gnu::noinline]] Result<T> failure_with_cause(const Device& device, Operation operation, acl::Entry entry,
                                               std::size_t needed, std::size_t available, acl::aclError code) noexcept {
  return refusal_with_cause(*device.session().record, operation, entry, code,
                            {.device = device.number(), .needed = needed, .available = available});
}

// A Result that is made where it goes: the failing call of a header costs a few dozen instructions and no copy.
template <class T>
Result<T> failure(const Device& device, Operation operation, acl::Entry entry, std::size_t needed,
                  std::size_t available, acl::aclError code) noexcept {
  if (says_why(*device.session().record, code)) {
    return failure_with_cause<T>(device, operation, entry, needed, available, code);
  }
  return Error(operation, entry, code, Reason::none,
               {.device = device.number(), .needed = needed, .available = available});
}

}  // namespace

Errc classify(Operation operation, std::int32_t acl_code, Reason reason) noexcept {
  if (operation == Operation::export_key && reason == Reason::not_device_memory) return Errc::not_exportable;  // R10
  if (operation == Operation::register_host && reason == Reason::already_mapped) return Errc::already_registered;
  const bool said = reason != Reason::none && reason != Reason::injected;
  return said ? kind_of(reason) : kind_of(operation, acl_code);
}

Error refusal(const RuntimeRecord& record, Operation operation, acl::Entry entry, acl::aclError code,
              const Detail& detail) noexcept {
  if (says_why(record, code)) return refusal_with_cause(record, operation, entry, code, detail);
  return Error(operation, entry, code, Reason::none, detail);
}

Result<void> copy_failed(const Device& device, Operation operation, std::size_t needed, std::size_t available,
                         acl::aclError code) noexcept {
  return failure<void>(device, operation, acl::Entry::aclrtMemcpy, needed, available, code);
}

Result<DeviceMemory> allocation_failed(const Device& device, std::size_t bytes, acl::aclError code) noexcept {
  return failure<DeviceMemory>(device, Operation::allocate, acl::Entry::aclrtMalloc, bytes, 0, code);
}

Error unusable(Session session, Operation operation) noexcept {
  if (session.record == nullptr) return Error(Errc::closed, operation);
  if (of_another_process(session)) return Error(Errc::forked, operation);
  return Error(Errc::runtime_gone, operation);
}

Error lacking(Operation operation, acl::Entry entry) noexcept {
  return Error(Errc::unsupported_by_runtime, operation, entry, 0, Reason::none, {});
}

}  // namespace devshare::detail
