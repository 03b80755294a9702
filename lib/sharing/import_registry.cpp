// SPDX-License-Identifier: Apache-2.0
// Every import this process has open, one record for each key or token, counted: the runtime imports it once, however
// many ImportedMappings there are of it.
#include "../core/parked.hpp"
#include "../core/process_identity.hpp"
#include "../core/runtime_state.hpp"
#include "../core/session_listeners.hpp"
#include "import_check.hpp"
#include "import_record.hpp"
#include "imported_handles.hpp"

#include <devshare/copy.hpp>
#include <devshare/diagnostic.hpp>

#include <atomic>
#include <utility>
#include <vector>

namespace devshare::detail {

// Read by every copy: see copy.hpp.
std::uint32_t cross_device_imports = 0;

namespace {

using Imports = SharedOpens<ImportRecord>;
Imports& imports() noexcept {
  alignas(Imports) static std::byte storage[sizeof(Imports)];
  static Imports* const made = new (storage) Imports;
  return *made;
}

// Imports that no object has any more and that could not be closed, each with one reference: tried again when something
// is imported. Guarded by Lock::imports.
std::vector<ImportRecord*>& parked_imports() noexcept {
  static auto* const parked = new std::vector<ImportRecord*>;
  return *parked;
}
constinit std::atomic<bool> any_parked{false};

std::vector<ImportRecord*> take_parked() noexcept {
  any_parked.store(false, std::memory_order_relaxed);
  return std::exchange(parked_imports(), {});
}

void session_ended() noexcept {
  std::vector<ImportRecord*> parked;
  {
    const std::lock_guard lock(mutex_of(Lock::imports));
    __atomic_store_n(&cross_device_imports, 0, __ATOMIC_RELEASE);
    imports().forget_all();
    forget_imported_handles();
    parked = take_parked();
  }
  for (ImportRecord* const record : parked) {  // went with their session
    unpark(record);
    imports().abandon(record);
  }
}

void forked() noexcept {
  cross_device_imports = 0;
  imports().forked();
  imported_handles_forked();
}

// Whether a refused close has left something to close. What the runtime does not know of any more is not there.
bool something_left(const ImportRecord& record, const Error& error) noexcept {
  return record.fields.mechanism == Mechanism::by_key ? error.kind() != Errc::stale_token : record.range != nullptr;
}

Result<void> close_now(ImportRecord& record) noexcept {
  auto closed = record.fields.mechanism == Mechanism::by_key ? close_by_key(record) : close_by_handle(record);
  if (!closed && something_left(record, closed.error())) return closed;
  record.count_cross_device(false);
  record.grants.clear();  // after the import
  return closed;
}

// Gives one reference up, which is null then unless something is left to close.
Result<void> release(ImportRecord*& reference) noexcept {
  if (!reference->piecewise) return imports().release(reference, &close_now, &something_left);
  auto closed = close_by_handle(*reference);
  if (reference->range == nullptr) delete std::exchange(reference, nullptr);
  return closed;
}

void keep_for_later(ImportRecord* record) noexcept {
  const std::size_t bytes = record->range != nullptr ? record->range->mapped() : record->fields.block_size;
  keep_parked(record, bytes, 0);
  {
    const std::lock_guard lock(mutex_of(Lock::imports));
    if (record->session.alive()) {  // else its end, which takes what is parked, may have been here already
      parked_imports().push_back(record);
      any_parked.store(true, std::memory_order_relaxed);
      return;
    }
  }
  unpark(record);
  imports().abandon(record);
}

// What could not be closed then may be closed now.
void close_parked() noexcept {
  if (!any_parked.load(std::memory_order_relaxed)) return;
  std::vector<ImportRecord*> parked;
  {
    const std::lock_guard lock(mutex_of(Lock::imports));
    parked = take_parked();
  }
  for (ImportRecord* record : parked) {
    unpark(record);
    if (!record->session.alive()) {
      imports().abandon(record);
      continue;
    }
    (void)release(record);
    if (record != nullptr) keep_for_later(record);
  }
}

}  // namespace

void ImportRecord::count_cross_device(bool open) noexcept {
  if (!cross_device || std::exchange(counted, open) == open || !session.alive()) return;
  __atomic_fetch_add(&cross_device_imports, open ? 1u : ~0u, __ATOMIC_RELEASE);
}

void listen_for_imports() noexcept {
  static constexpr SessionListener listener{&session_ended, &forked};
  static constinit std::atomic<bool> listening = false;
  listen_to_sessions(listener, listening);
}

Result<ImportValue> open_import(const ReceivedTicket& ticket, const Device& device, PeerAccess* grant,
                                AccessMode access, Populate populate) noexcept {
  const TicketFields& fields = ticket.fields();
  const Operation operation = import_operation(fields.mechanism);
  const Session& session = device.session();
  if (!session.alive()) return unusable(session, operation);
  DEVSHARE_CHECK(check_ticket(fields, device, grant, access, operation));
  const bool by_key = fields.mechanism == Mechanism::by_key;
  const acl::Table& table = session.record->table;
  if (by_key && (table.aclrtIpcMemImportByKey == nullptr || table.aclrtIpcMemClose == nullptr)) {
    return lacking(operation, acl::Entry::aclrtIpcMemImportByKey);
  }
  listen_for_imports();
  close_parked();

  const auto admits = [&](const ImportRecord& open) {
    return may_share({open.fields, open.device, open.access}, fields, device, access, operation);
  };
  const auto make = [&] {
    auto* const record = new ImportRecord;
    record->session = session;
    record->fields = fields;
    record->device = device.number();
    record->access = access;
    record->populate = populate;
    record->cross_device = by_key && fields.owner_device != driver_number(*session.record, device.number());
    return record;
  };
  const auto open = [&](ImportRecord& record) -> Result<void> {
    DEVSHARE_CHECK(by_key ? open_by_key(record, grant == nullptr) : open_by_handle(record));
    record.count_cross_device(true);
    return {};
  };
  DEVSHARE_TRY(record, imports().acquire(name_of_memory(fields), admits, make, open));
  if (grant != nullptr) {
    const std::lock_guard lock(mutex_of(Lock::imports));
    record->grants.push_back(std::move(*grant));
  }
  return ImportValue{.record = record,
                     .address = static_cast<std::byte*>(record->address) + fields.slice_offset,
                     .size = static_cast<std::size_t>(fields.slice_size),
                     .device = record->device,
                     .mechanism = fields.mechanism};
}

Result<void> ImportPolicy::close(const Session&, Value& value) noexcept {
  auto closed = release(value.record);
  if (value.record != nullptr && value.record->piecewise) value.size = value.record->range->mapped();
  return closed;
}

void ImportPolicy::park(const Value& value, const Error& error) noexcept {
  if (value.record != nullptr) {
    keep_for_later(value.record);
    report({DiagnosticEvent::memory_parked, error, value.address});
  } else if (value.mechanism == Mechanism::by_key) {  // by handle the part that was left is parked, and told
    report({DiagnosticEvent::close_failed, error, value.address});
  }
}

void ImportPolicy::abandon(const Value& value) noexcept { imports().abandon(value.record); }

// By key the memory goes with its exporter; what came by a handle is held by whoever has it (R39).
Result<void> check_import(const Session& session, const ImportValue& value) noexcept {
  if (!session.alive()) return unusable(session, Operation::use_import);
  const ImportRecord& record = *value.record;
  if (record.fields.mechanism != Mechanism::by_key) return {};
  const bool gone = session.record->extras.import_gone != nullptr ? session.record->extras.import_gone(record.address)
                                                                  : process_alive(record.fields.exporter) == Alive::no;
  if (!gone) return {};
  return Error(Errc::exporter_gone, Operation::use_import,
               {.device = record.device, .peer_device = record.fields.owner_device, .pid = record.fields.exporter.pid});
}

bool import_is_for_reading(const Session& session, const ImportValue& value) noexcept {
  if (!session.alive() || session.record->extras.imported_for_reading == nullptr) return false;
  return session.record->extras.imported_for_reading(value.address);
}

bool inside_cross_device_import(const void* address) noexcept {
  const std::lock_guard lock(mutex_of(Lock::imports));
  bool inside = false;
  imports().for_each_open([&](const ImportRecord& record) {
    if (!record.cross_device) return;
    const auto* const begin = static_cast<const std::byte*>(record.address);
    inside = inside || (address >= begin && address < begin + record.fields.block_size);
  });
  return inside;
}

}  // namespace devshare::detail
