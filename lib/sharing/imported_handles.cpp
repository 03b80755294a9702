// SPDX-License-Identifier: Apache-2.0
#include "imported_handles.hpp"

#include "../core/host_wish.hpp"
#include "../dma/range.hpp"
#include "handle_calls.hpp"
#include "import_check.hpp"
#include "shared_opens.hpp"

#include <devshare/detail/owned.hpp>

#include <mutex>

namespace devshare::detail {
namespace {

// Two bases: what mappings use of a handle, and how it is counted.
struct ImportedHandleRecord final : HandleRecord, SharedOpen {
  TicketFields fields;
  AccessMode access{};
  bool size_checked = false;  // guarded by Lock::imports
};

using Handles = SharedOpens<ImportedHandleRecord>;
Handles& handles() noexcept {
  static Handles* const made = new Handles;
  return *made;
}

ImportedHandleRecord* imported(HandleRecord* record) noexcept { return static_cast<ImportedHandleRecord*>(record); }

Result<void> import_now(ImportedHandleRecord& record) noexcept {
  const RuntimeRecord& runtime = *record.session.record;
  const CurrentDevice current(runtime, record.device);
  const ReadingOnly reading(runtime, record.access);
  const HostWishes wishes(runtime, record.host);
  Called called{acl::Entry::aclrtSetDevice, current.code()};
  if (called.code == 0) {
    called = import_token(runtime.table, record.fields.mechanism, record.fields.payload, record.device, &record.handle);
  }
  if (called.lacking) return lacking(Operation::import_handle, called.entry);
  if (called.code == 0) return {};
  return refuse_import(record.session, record.fields, record.device, Operation::import_handle, called.entry,
                       called.code);
}

Result<void> free_now(ImportedHandleRecord& record) noexcept {
  const RuntimeRecord& runtime = *record.session.record;
  const CurrentDevice current(runtime, record.device);
  acl::aclError code = current.code();
  if (code == 0) code = runtime.table.aclrtFreePhysical(record.handle);
  if (code == 0) return {};
  return refuse_import(record.session, record.fields, record.device, Operation::free_handle,
                       acl::Entry::aclrtFreePhysical, code);
}

Result<void> drop(HandleRecord* record) noexcept {
  ImportedHandleRecord* reference = imported(record);
  return handles().release(reference, &free_now, [](const auto&, const Error&) { return true; });
}
void abandon(HandleRecord* record) noexcept { handles().abandon(imported(record)); }

// Whether the memory is as long as its ticket says: the runtime compares that when it is mapped, and says so in no other
// way. A handle that was let be with a forged size would stand in the way of honest tickets of the same token.
Result<void> check_size(ImportedHandleRecord& record) noexcept {
  {
    const std::lock_guard lock(mutex_of(Lock::imports));
    if (record.size_checked) return {};
  }
  constexpr Operation operation = Operation::import_handle;
  HandleRecord looked_at = record;
  looked_at.needs_access = false;  // nobody touches it
  DEVSHARE_TRY(range, reserve_range(record.session, record.device, record.physical_size, operation));
  auto mapped = map_piece(*range, &looked_at, operation);
  if (mapped) {
    if (auto unmapped = unmap_last_piece(*range, operation); !unmapped) mapped = unmapped.error();
  }
  if (!range->pieces.empty()) {
    park(range, record.physical_size, mapped.error());
    return mapped;
  }
  if (auto released = release_range(range, operation); !released) {
    park(range, record.physical_size, released.error());
    return released;
  }
  DEVSHARE_CHECK(std::move(mapped));
  const std::lock_guard lock(mutex_of(Lock::imports));
  record.size_checked = true;
  return {};
}

}  // namespace

Result<HandleRecord*> import_handle(const TicketFields& fields, const Device& device, AccessMode access,
                                    Populate populate) noexcept {
  const Session& session = device.session();
  if (session.record->table.aclrtFreePhysical == nullptr) {
    return lacking(Operation::import_handle, acl::Entry::aclrtFreePhysical);
  }
  const auto admits = [&](const ImportedHandleRecord& open) {
    return may_share({open.fields, open.device, open.access}, fields, device, access, Operation::import_handle);
  };
  const auto make = [&] {
    auto* const record = new ImportedHandleRecord;
    record->session = session;
    record->device = device.number();
    record->size = static_cast<std::size_t>(fields.block_size);
    record->physical_size = record->size;
    record->host.populate = populate;
    record->needs_access = true;
    record->drop = &drop;
    record->abandon = &abandon;
    record->fields = fields;
    record->access = access;
    return record;
  };
  DEVSHARE_TRY(record, handles().acquire(name_of_memory(fields), admits, make, &import_now));
  return static_cast<HandleRecord*>(record);
}

const TicketFields& fields_of_imported(const HandleRecord& record) noexcept {
  return static_cast<const ImportedHandleRecord&>(record).fields;
}

Result<PhysicalValue> open_imported_handle(const ReceivedTicket& ticket, const Device& device,
                                           Populate populate) noexcept {
  constexpr Operation operation = Operation::import_handle;
  const TicketFields& fields = ticket.fields();
  if (!device.session().alive()) return unusable(device.session(), operation);
  if (fields.mechanism == Mechanism::by_key) {
    return Error(Errc::mechanism_mismatch, operation, {.device = device.number(), .pid = fields.exporter.pid});
  }
  DEVSHARE_CHECK(check_ticket(fields, device, nullptr, AccessMode::read_write, operation));
  listen_for_imports();
  DEVSHARE_TRY(record, import_handle(fields, device, AccessMode::read_write, populate));
  if (auto checked = check_size(*imported(record)); !checked) {
    (void)drop_or_park(record);
    return checked.error();
  }
  return PhysicalValue{record, static_cast<std::size_t>(fields.slice_size), record->physical_size, record->device};
}

void forget_imported_handles() noexcept { handles().forget_all(); }
void imported_handles_forked() noexcept { handles().forked(); }

}  // namespace devshare::detail
