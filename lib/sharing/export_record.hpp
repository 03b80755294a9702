// SPDX-License-Identifier: Apache-2.0
// What an export is, whichever mechanism it goes by.
#pragma once

#include <devshare/exported.hpp>

namespace devshare::detail {

// Immutable from the moment it is made, so that several threads may admit at once.
struct ExportRecord {
  TicketFields fields;  // of the whole block; a ticket is this with its slice
  std::int32_t device = -1;
  const void* identity = nullptr;  // address or handle, for reports

  Error refuse(const Session& session, Operation operation, acl::Entry entry, acl::aclError code,
               std::int32_t pid = 0) const noexcept {
    return refusal(*session.record, operation, entry, code,
                   {.device = device, .pid = pid, .needed = fields.block_size});
  }
};

// Admits at most as many pids as one call of the mechanism takes. The device is current.
Result<void> admit_to_key(const Session& session, const ExportRecord& record, std::span<std::int32_t> pids) noexcept;
Result<void> admit_to_handle(const Session& session, const ExportRecord& record, std::span<std::int32_t> pids) noexcept;

// A ticket as bytes, whatever it goes by.
Result<TicketBytes> admit(const Owned<ExportPolicy>& owned, std::span<const BarePid> pids, Slice slice,
                          AccessMode access) noexcept;
Result<TicketBytes> issue_ticket(const Owned<ExportPolicy>& owned, Slice slice, AccessMode access) noexcept;

// Ends the export in the runtime. A handle has nothing to end: its export stays with it (R27).
Result<void> close_key(const Session& session, const ExportRecord& record) noexcept;

}  // namespace devshare::detail
