// SPDX-License-Identifier: Apache-2.0
// What went wrong: a small value, built without allocation, that says what was tried, on what, the code the runtime
// gave, and which kind of failure it is. Its text is made only when asked for: devshare/explain.hpp has the causes and
// remedies, devshare/format.hpp prints everything.
#pragma once

#include <devshare/acl/codes.hpp>
#include <devshare/acl/table.hpp>
#include <devshare/detail/attributes.hpp>
#include <devshare/detail/cause.hpp>

namespace devshare {

// The kind of a failure: what a program decides by. docs/errors.md lists each with its causes and its remedy.
enum class Errc : std::uint16_t {
  invalid_argument = 1,    // null, zero, or a value outside its documented range; nothing was called
  out_of_range,            // an offset or a length leaves the block, or overflows
  closed,                  // the object was closed, moved from, or given to something else
  forked,                  // the object belongs to the parent process (R4)
  runtime_gone,            // the runtime was finalized after the object was made
  runtime_not_found,       // the runtime named by DEVSHARE_RUNTIME could not be loaded
  runtime_incomplete,      // the library that was loaded lacks a required entry point
  unsupported_by_runtime,  // the runtime lacks an optional entry point, or says it does not support it
  backend_unavailable,     // the kernel refuses what the host runtime is made of
  no_such_device,          // the device id is outside [0, device count)
  no_device_context,       // no device could be made current on this thread (R1)
  out_of_memory,           // the device has no room
  no_space,                // the host's backing file system has no room
  fd_limit,                // the process has no descriptor left
  mapping_limit,           // the process has no mapping left
  address_space_exhausted, // no device address range is free
  not_exportable,          // not the start of aclrtMalloc memory, or read-only, or itself imported (R10, R12)
  not_authorised,          // the importer is not admitted, or was admitted before it started (R13..R15)
  validation_disabled,     // admit on a key that asks nobody (R13)
  not_the_exporter,        // only the exporting process may do this (R17)
  stale_token,             // the key was closed, its memory freed, or it never existed (R18)
  exporter_gone,           // the exporting process has ended, or took its memory back
  self_import,             // a ticket that this very process issued
  already_imported,        // this process has the key open on another device, or outside devshare (R25)
  peer_access_missing,     // peer access between the two devices is not on in both directions (R19, R45)
  peer_access_impossible,  // the two devices cannot reach each other, or are the same
  peer_access_limit,       // too many peers of a device, or processes of a pair
  peer_mismatch,           // the PeerAccess given is for another pair of devices
  cross_device_copy,       // a copy that R42 forbids on memory of another device
  malformed_token,         // not a ticket, or damaged on its way
  version_mismatch,        // a ticket of another version or byte order
  mechanism_mismatch,      // a ticket of another sharing mechanism than this import takes
  already_exported_as,     // the handle has its one export already, of another kind or for other importers (R27)
  mixed_memory,            // the range holds memory of another device, or of another origin (R29)
  no_backing,              // the mapping's memory was released and is not restored
  in_use,                  // something that must end first goes on: a copy, a mapping
  already_registered,      // the host memory is registered already
  wrong_device,            // the stream, event or notify is of another device than it is used on
  resource_limit,          // no stream, event or notify is left
  not_ready,               // asked for what has not happened yet
  different_host,          // the ticket was issued on another machine, or before a reboot
  access_mismatch,         // a read-only ticket where a writable mapping is asked for
  timed_out,               // the other side did not answer before the deadline
  bad_switch,              // a variable of the host runtime is none, or has a value that cannot be understood
  no_lender,               // nobody serves the endpoint
  endpoint_in_use,         // another lender serves the endpoint, or something else lies there
  not_permitted,           // the lender's policy does not allow this borrower, or the borrower's this lender
  no_such_offer,           // the lender offers nothing by this name, or not any more
  already_offered,         // the lender has an offer of this name
  still_imported,          // others still hold leases: needed = how many
  revoked,                 // the lender has taken the memory back
  bad_message,             // the other side sent what no devshare sends
  refused,                 // the runtime said no and did not say why: see the causes by operation
};

// What was tried.
enum class Operation : std::uint16_t {
  none,
  open_runtime,
  finalize_runtime,
  open_device,
  query_device,
  bare_pid,
  allocate,
  free_memory,
  copy_to_device,
  copy_to_host,
  copy_on_device,
  fill,
  can_access_peer,
  enable_peer_access,
  disable_peer_access,
  allocate_physical,
  retain_handle,
  free_handle,
  reserve_address,
  release_address,
  map_memory,
  unmap_memory,
  release_backing,
  restore_backing,
  register_host,
  unregister_host,
  create_stream,
  end_stream,
  synchronize,
  query_stream,
  create_event,
  end_event,
  record_event,
  wait_event,
  query_event,
  measure_events,
  create_notify,
  end_notify,
  record_notify,
  wait_notify,
  reset_notify,
  export_event,
  import_event,
  export_notify,
  import_notify,
  write_value,
  wait_value,
  export_key,
  export_handle,
  admit,
  issue_ticket,
  decode_ticket,
  import_key,
  import_handle,
  use_import,
  close_import,
  close_export,
  choose,
  open_lender,
  offer,
  serve,
  publish,
  close_offer,
  revoke_offer,
  borrow,
  use_lease,
  wait_for_newer,
  return_lease,
  view,
  use_mapping,
};

// The ends and the numbers of a failure. A field that the operation has no use for holds its default.
struct Detail {
  std::int32_t device = -1;        // the local device, as this process numbers it
  std::int32_t peer_device = -1;   // the other device (the ticket's numbering for imports)
  std::int32_t pid = 0;            // the other process
  std::int32_t system_errno = 0;   // what the operating system said
  std::uint64_t needed = 0;        // bytes, descriptors or whatever ran out
  std::uint64_t available = 0;     // how much of it there was
};

namespace detail {
// The kind of what a runtime refused, from its reason where it gives one, else from operation and code.
DEVSHARE_API Errc classify(Operation operation, std::int32_t acl_code, Reason reason) noexcept;
}  // namespace detail

class Error {
 public:
  using Reason = detail::Reason;

  constexpr Error(Errc kind, Operation operation, Detail detail = {}) noexcept
      : kind_(kind), operation_(operation), detail_(detail) {}
  constexpr Error(Errc kind, Operation operation, acl::Entry entry, std::int32_t acl_code, Reason reason,
                  Detail detail) noexcept
      : acl_code_(acl_code), kind_(kind), operation_(operation), entry_(entry), reason_(reason), detail_(detail) {}
  // A refusal by the runtime, which is classified when somebody asks.
  constexpr Error(Operation operation, acl::Entry entry, std::int32_t acl_code, Reason reason, Detail detail) noexcept
      : acl_code_(acl_code), operation_(operation), entry_(entry), reason_(reason), detail_(detail) {}

  constexpr Errc kind() const noexcept {
    return kind_ != unclassified ? kind_ : detail::classify(operation_, acl_code_, reason_);
  }
  constexpr Operation operation() const noexcept { return operation_; }

  // The code the runtime returned, 0 when devshare refused before calling it.
  constexpr std::int32_t acl_code() const noexcept { return acl_code_; }

  // The ACL call that failed; acl::Entry::none when there was none.
  constexpr acl::Entry entry() const noexcept { return entry_; }

  // Why the host runtime refused; Reason::none from the vendor's runtime, which does not say.
  constexpr Reason reason() const noexcept { return reason_; }

  constexpr Detail detail() const noexcept { return detail_; }

  // For the library itself: the number of the text that belongs to this very failure (Explanation::note); 0: none.
  constexpr std::uint32_t note() const noexcept { return note_; }
  constexpr Error with_note(std::uint32_t note) const noexcept {
    Error noted = *this;
    noted.note_ = note;
    return noted;
  }

  friend constexpr bool operator==(const Error& error, Errc kind) noexcept { return error.kind() == kind; }

 private:
  static constexpr Errc unclassified{};  // no kind has this number

  std::int32_t acl_code_ = 0;
  Errc kind_ = unclassified;
  Operation operation_;
  acl::Entry entry_ = acl::Entry::none;
  Reason reason_ = Reason::none;
  std::uint32_t note_ = 0;
  Detail detail_;
};

static_assert(sizeof(Error) <= 48, "an Error is passed by value and must stay small");
static_assert(__is_trivially_copyable(Error), "an Error must cost no allocation and no destructor");

}  // namespace devshare
