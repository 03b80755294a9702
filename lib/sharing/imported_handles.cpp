// SPDX-License-Identifier: Apache-2.0
#include "imported_handles.hpp"

#include "../core/host_wish.hpp"
#include "handle_calls.hpp"
#include "import_check.hpp"
#include "shared_opens.hpp"

namespace devshare::detail {
namespace {

// Two bases: what mappings use of a handle, and how it is counted.
struct ImportedHandleRecord final : HandleRecord, SharedOpen {
  TicketFields fields;
  AccessMode access{};
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

Result<void> drop(HandleRecord* record) noexcept { return handles().release(imported(record), &free_now); }
void abandon(HandleRecord* record) noexcept { handles().abandon(imported(record)); }

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
  return PhysicalValue{record, static_cast<std::size_t>(fields.slice_size), record->physical_size, record->device};
}

void forget_imported_handles() noexcept { handles().forget_all(); }
void imported_handles_forked() noexcept { handles().forked(); }

}  // namespace devshare::detail
