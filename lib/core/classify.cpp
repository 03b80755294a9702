// SPDX-License-Identifier: Apache-2.0
// From a code to the kind of a failure. Where the runtime gives a reason, the reason decides; otherwise operation and
// code do, and 507899 without a reason stays `refused`: the causes by operation are in explain.cpp.
#include "runtime_state.hpp"

#include <unistd.h>

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
    case Reason::in_use: return Errc::refused;
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
    case acl::code::rt_drv_internal:
      return operation == Operation::export_key ? Errc::not_exportable : Errc::refused;
    default: return Errc::refused;
  }
}

}  // namespace

Error refusal(const RuntimeRecord& record, Operation operation, acl::Entry entry, acl::aclError code,
              const Detail& detail) noexcept {
  if (code == 0) {  // the call succeeded and gave nothing usable, as aclrtDeviceGetBareTgid may
    return Error(Errc::refused, operation, entry, code, Reason::none, detail);
  }
  if (record.extras.last_cause == nullptr) {
    return Error(kind_of(operation, code), operation, entry, code, Reason::none, detail);
  }
  const Cause& cause = record.extras.last_cause();
  Detail full = detail;
  if (cause.system_errno != 0) full.system_errno = cause.system_errno;
  if (cause.pid != 0) full.pid = cause.pid;
  if (cause.peer_device >= 0) full.peer_device = cause.peer_device;
  if (cause.needed != 0 || cause.available != 0) {
    full.needed = cause.needed;
    full.available = cause.available;
  }
  const bool said = cause.reason != Reason::none && cause.reason != Reason::injected;
  return Error(said ? kind_of(cause.reason) : kind_of(operation, code), operation, entry, code, cause.reason, full);
}

Error unusable(const Session& session, Operation operation) noexcept {
  if (session.record == nullptr) return Error(Errc::closed, operation);
  if (state_of(*session.record).pid != ::getpid()) return Error(Errc::forked, operation);
  return Error(Errc::runtime_gone, operation);
}

Error lacking(Operation operation, acl::Entry entry) noexcept {
  return Error(Errc::unsupported_by_runtime, operation, entry, 0, Reason::none, {});
}

}  // namespace devshare::detail
