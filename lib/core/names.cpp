// SPDX-License-Identifier: Apache-2.0
#include <devshare/explain.hpp>

namespace devshare {

std::string_view name_of(Errc kind) noexcept {
  switch (kind) {
    case Errc::invalid_argument: return "invalid_argument";
    case Errc::out_of_range: return "out_of_range";
    case Errc::closed: return "closed";
    case Errc::forked: return "forked";
    case Errc::runtime_gone: return "runtime_gone";
    case Errc::runtime_not_found: return "runtime_not_found";
    case Errc::runtime_incomplete: return "runtime_incomplete";
    case Errc::unsupported_by_runtime: return "unsupported_by_runtime";
    case Errc::backend_unavailable: return "backend_unavailable";
    case Errc::no_such_device: return "no_such_device";
    case Errc::no_device_context: return "no_device_context";
    case Errc::out_of_memory: return "out_of_memory";
    case Errc::no_space: return "no_space";
    case Errc::fd_limit: return "fd_limit";
    case Errc::mapping_limit: return "mapping_limit";
    case Errc::address_space_exhausted: return "address_space_exhausted";
    case Errc::not_exportable: return "not_exportable";
    case Errc::not_authorised: return "not_authorised";
    case Errc::validation_disabled: return "validation_disabled";
    case Errc::not_the_exporter: return "not_the_exporter";
    case Errc::stale_token: return "stale_token";
    case Errc::exporter_gone: return "exporter_gone";
    case Errc::self_import: return "self_import";
    case Errc::already_imported: return "already_imported";
    case Errc::peer_access_missing: return "peer_access_missing";
    case Errc::peer_access_impossible: return "peer_access_impossible";
    case Errc::peer_access_limit: return "peer_access_limit";
    case Errc::peer_mismatch: return "peer_mismatch";
    case Errc::cross_device_copy: return "cross_device_copy";
    case Errc::malformed_token: return "malformed_token";
    case Errc::version_mismatch: return "version_mismatch";
    case Errc::mechanism_mismatch: return "mechanism_mismatch";
    case Errc::already_exported_as: return "already_exported_as";
    case Errc::mixed_memory: return "mixed_memory";
    case Errc::no_backing: return "no_backing";
    case Errc::in_use: return "in_use";
    case Errc::already_registered: return "already_registered";
    case Errc::wrong_device: return "wrong_device";
    case Errc::resource_limit: return "resource_limit";
    case Errc::not_ready: return "not_ready";
    case Errc::different_host: return "different_host";
    case Errc::access_mismatch: return "access_mismatch";
    case Errc::timed_out: return "timed_out";
    case Errc::bad_switch: return "bad_switch";
    case Errc::no_lender: return "no_lender";
    case Errc::endpoint_in_use: return "endpoint_in_use";
    case Errc::not_permitted: return "not_permitted";
    case Errc::no_such_offer: return "no_such_offer";
    case Errc::already_offered: return "already_offered";
    case Errc::still_imported: return "still_imported";
    case Errc::revoked: return "revoked";
    case Errc::bad_message: return "bad_message";
    case Errc::refused: return "refused";
  }
  return "unknown";
}

std::string_view name_of(Operation operation) noexcept {
  switch (operation) {
    case Operation::none: return "nothing";
    case Operation::open_runtime: return "open the runtime";
    case Operation::finalize_runtime: return "finalize the runtime";
    case Operation::open_device: return "open a device";
    case Operation::query_device: return "query a device";
    case Operation::bare_pid: return "ask for this process's bare pid";
    case Operation::allocate: return "allocate device memory";
    case Operation::free_memory: return "free device memory";
    case Operation::copy_to_device: return "copy to the device";
    case Operation::copy_to_host: return "copy to the host";
    case Operation::copy_on_device: return "copy on the device";
    case Operation::fill: return "fill device memory";
    case Operation::can_access_peer: return "ask whether a peer can be reached";
    case Operation::enable_peer_access: return "enable peer access";
    case Operation::disable_peer_access: return "disable peer access";
    case Operation::allocate_physical: return "allocate physical memory";
    case Operation::retain_handle: return "retain a physical handle";
    case Operation::free_handle: return "free a physical handle";
    case Operation::reserve_address: return "reserve addresses";
    case Operation::release_address: return "release addresses";
    case Operation::map_memory: return "map physical memory";
    case Operation::unmap_memory: return "unmap physical memory";
    case Operation::release_backing: return "release the memory of a mapping";
    case Operation::restore_backing: return "restore the memory of a mapping";
    case Operation::register_host: return "register host memory";
    case Operation::unregister_host: return "unregister host memory";
    case Operation::create_stream: return "create a stream";
    case Operation::end_stream: return "end a stream";
    case Operation::synchronize: return "wait for queued work";
    case Operation::query_stream: return "query a stream";
    case Operation::create_event: return "create an event";
    case Operation::end_event: return "end an event";
    case Operation::record_event: return "record an event";
    case Operation::wait_event: return "let a stream wait for an event";
    case Operation::query_event: return "query an event";
    case Operation::measure_events: return "measure the time between events";
    case Operation::create_notify: return "create a notify";
    case Operation::end_notify: return "end a notify";
    case Operation::record_notify: return "record a notify";
    case Operation::wait_notify: return "let a stream wait for a notify";
    case Operation::reset_notify: return "reset notifies";
    case Operation::export_event: return "export an event";
    case Operation::import_event: return "import an event";
    case Operation::export_notify: return "export a notify";
    case Operation::import_notify: return "import a notify";
    case Operation::write_value: return "write a value from a stream";
    case Operation::wait_value: return "let a stream wait for a value";
    case Operation::export_key: return "export memory by key";
    case Operation::export_handle: return "export a physical handle";
    case Operation::admit: return "admit an importer";
    case Operation::issue_ticket: return "issue a ticket";
    case Operation::decode_ticket: return "decode a ticket";
    case Operation::import_key: return "import memory by key";
    case Operation::import_handle: return "import a physical handle";
    case Operation::use_import: return "use imported memory";
    case Operation::close_import: return "close an import";
    case Operation::close_export: return "close an export";
    case Operation::choose: return "choose a mechanism";
    case Operation::open_lender: return "open a lender";
    case Operation::offer: return "offer memory";
    case Operation::serve: return "serve borrowers";
    case Operation::publish: return "publish newer data";
    case Operation::close_offer: return "close an offer";
    case Operation::revoke_offer: return "revoke an offer";
    case Operation::borrow: return "borrow memory";
    case Operation::use_lease: return "use a lease";
    case Operation::wait_for_newer: return "wait for newer data";
    case Operation::return_lease: return "return a lease";
    case Operation::view: return "view device memory";
    case Operation::use_mapping: return "use mapped memory";
  }
  return "unknown";
}

std::string_view name_of(acl::Entry entry) noexcept {
  switch (entry) {
#define DEVSHARE_NAME(name, result, parameters, need, since) \
  case acl::Entry::name: return #name;
    DEVSHARE_ACL_ENTRIES(DEVSHARE_NAME)
#undef DEVSHARE_NAME
    case acl::Entry::none: break;
  }
  return "no call";
}

std::string_view name_of(Mechanism mechanism) noexcept {
  switch (mechanism) {
    case Mechanism::by_key: return "by_key";
    case Mechanism::v1: return "v1";
    case Mechanism::v2: return "v2";
    case Mechanism::fabric: return "fabric";
  }
  return "unknown";
}

std::string_view name_of_acl_code(std::int32_t code) noexcept {
  switch (code) {
#define DEVSHARE_NAME(name, value, text) \
  case value: return value == 0 ? "ACL_SUCCESS" : "ACL_ERROR_" text;
    DEVSHARE_ACL_CODES(DEVSHARE_NAME)
#undef DEVSHARE_NAME
    default: return "";
  }
}

std::string_view name_of(Error::Reason reason) noexcept {
  using Reason = Error::Reason;
  switch (reason) {
    case Reason::none: return "none";
    case Reason::not_initialised: return "not_initialised";
    case Reason::forked: return "forked";
    case Reason::no_context: return "no_context";
    case Reason::bad_argument: return "bad_argument";
    case Reason::no_such_device: return "no_such_device";
    case Reason::unsupported: return "unsupported";
    case Reason::injected: return "injected";
    case Reason::capacity: return "capacity";
    case Reason::no_space: return "no_space";
    case Reason::descriptor_limit: return "descriptor_limit";
    case Reason::mapping_limit: return "mapping_limit";
    case Reason::address_space: return "address_space";
    case Reason::backend_unavailable: return "backend_unavailable";
    case Reason::not_device_memory: return "not_device_memory";
    case Reason::not_block_start: return "not_block_start";
    case Reason::imported_memory: return "imported_memory";
    case Reason::read_only: return "read_only";
    case Reason::out_of_bounds: return "out_of_bounds";
    case Reason::cross_device_copy: return "cross_device_copy";
    case Reason::in_use: return "in_use";
    case Reason::unknown_key: return "unknown_key";
    case Reason::exporter_gone: return "exporter_gone";
    case Reason::not_admitted: return "not_admitted";
    case Reason::admitted_too_early: return "admitted_too_early";
    case Reason::validation_disabled: return "validation_disabled";
    case Reason::not_the_exporter: return "not_the_exporter";
    case Reason::too_many_pids: return "too_many_pids";
    case Reason::own_key: return "own_key";
    case Reason::on_other_device: return "on_other_device";
    case Reason::peer_access_missing: return "peer_access_missing";
    case Reason::peer_access_limit: return "peer_access_limit";
    case Reason::peer_impossible: return "peer_impossible";
    case Reason::not_imported: return "not_imported";
    case Reason::user_refused: return "user_refused";
    case Reason::timed_out: return "timed_out";
    case Reason::protocol: return "protocol";
    case Reason::key_limit: return "key_limit";
    case Reason::foreign_pid_namespace: return "foreign_pid_namespace";
    case Reason::p2p_policy_missing: return "p2p_policy_missing";
    case Reason::bad_switch: return "bad_switch";
    case Reason::already_exported: return "already_exported";
    case Reason::already_imported: return "already_imported";
    case Reason::wrong_token_kind: return "wrong_token_kind";
    case Reason::other_server: return "other_server";
    case Reason::unknown_handle: return "unknown_handle";
    case Reason::mapped_memory: return "mapped_memory";
    case Reason::not_reserved: return "not_reserved";
    case Reason::already_mapped: return "already_mapped";
    case Reason::mixed_memory: return "mixed_memory";
    case Reason::no_access: return "no_access";
    case Reason::unknown_stream: return "unknown_stream";
    case Reason::unknown_event: return "unknown_event";
    case Reason::unknown_notify: return "unknown_notify";
    case Reason::other_device: return "other_device";
    case Reason::resource_limit: return "resource_limit";
    case Reason::earlier_task_failed: return "earlier_task_failed";
    case Reason::not_happened: return "not_happened";
    case Reason::shared_event: return "shared_event";
    case Reason::not_the_creator: return "not_the_creator";
  }
  return "unknown";
}

}  // namespace devshare
