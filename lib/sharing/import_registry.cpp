// SPDX-License-Identifier: Apache-2.0
// Every import this process has open, one record a key, counted: the runtime imports a key once, however many
// ImportedMappings there are of it.
#include "../core/locks.hpp"
#include "../core/process_identity.hpp"
#include "../core/runtime_state.hpp"
#include "../core/session_listeners.hpp"

#include <devshare/copy.hpp>
#include <devshare/imported.hpp>

#include <condition_variable>
#include <cstring>
#include <new>
#include <string_view>
#include <unordered_map>

namespace devshare::detail {

struct ImportRecord {
  enum class State : std::uint8_t { opening, open, closing, failed };

  Session session;
  TicketFields fields;
  std::int32_t device = -1;
  State state = State::opening;
  std::uint32_t references = 0;  // objects, and threads that wait for the first of them
  bool cross_device = false;
  void* address = nullptr;
  Error error{Errc::refused, Operation::import_key};  // why it failed, for those who waited

  const char* key() const noexcept { return reinterpret_cast<const char*>(fields.payload.data()); }
  std::string_view name() const noexcept { return {key(), fields.payload_size}; }
};

// Read by every copy: see copy.hpp.
std::uint32_t cross_device_imports = 0;

namespace {

using State = ImportRecord::State;

// Guarded by Lock::imports. Immortal, so that static objects may close at exit in any order (B011).
struct Registry {
  std::unordered_map<std::string_view, ImportRecord*> records;
  std::condition_variable changed;
};

Registry& registry() noexcept {
  alignas(Registry) static std::byte storage[sizeof(Registry)];
  static Registry* const made = new (storage) Registry;
  return *made;
}

// The imports of a session that is over are forgotten; their objects are inert and still have the records.
void session_ended() noexcept {
  const std::lock_guard lock(mutex_of(Lock::imports));
  __atomic_store_n(&cross_device_imports, 0, __ATOMIC_RELEASE);
  registry().records.clear();
}

// Threads that waited do not exist here.
void forked() noexcept {
  cross_device_imports = 0;
  registry().records.clear();
  new (&registry().changed) std::condition_variable;
}

void listen_once() noexcept {
  static constexpr SessionListener listener{&session_ended, &forked};
  static const bool listening = (listen_to_sessions(listener), true);
  (void)listening;
}

// Whether two tickets with one key are of one export: the nonce tells, should a runtime use a key twice.
bool same_export(const TicketFields& a, const TicketFields& b) noexcept {
  return a.nonce == b.nonce && a.block_size == b.block_size && a.exporter == b.exporter;
}

// Takes a record out of the table, unless it was forgotten and another has its place.
void remove(const ImportRecord& record) noexcept {
  const auto found = registry().records.find(record.name());
  if (found != registry().records.end() && found->second == &record) registry().records.erase(found);
}

Error refuse(const ImportRecord& record, Operation operation, acl::Entry entry, acl::aclError code) noexcept {
  return refusal(*record.session.record, operation, entry, code,
                 {.device = record.device,
                  .peer_device = record.fields.owner_device,
                  .pid = record.fields.exporter.pid,
                  .needed = record.fields.block_size});
}

Error refuse(Errc kind, const TicketFields& fields, const Device& device) noexcept {
  return Error(kind, Operation::import_key,
               {.device = device.number(), .peer_device = fields.owner_device, .pid = fields.exporter.pid,
                .needed = fields.block_size});
}

// Everything that can be said of a ticket before the runtime is asked.
Result<void> check_ticket(const TicketFields& fields, const Device& device, const PeerAccess* grant,
                          AccessMode access) noexcept {
  const RuntimeRecord& runtime = *device.session().record;
  if (fields.mechanism != Mechanism::by_key) return refuse(Errc::mechanism_mismatch, fields, device);
  const ExporterIdentity self = own_identity();
  if (fields.exporter == self) return refuse(Errc::self_import, fields, device);
  if (fields.exporter.boot_id != self.boot_id) return refuse(Errc::different_host, fields, device);
  if (access == AccessMode::read_write && fields.access != AccessMode::read_write) {
    return refuse(Errc::access_mismatch, fields, device);
  }
  if (grant != nullptr) {
    const std::int32_t owner = local_number(runtime, fields.owner_device);
    if (owner < 0 || !grant->joins(device, device_of(device.session(), owner))) {
      return refuse(Errc::peer_mismatch, fields, device);
    }
  }
  if (runtime.table.aclrtIpcMemImportByKey == nullptr || runtime.table.aclrtIpcMemClose == nullptr) {
    return lacking(Operation::import_key, acl::Entry::aclrtIpcMemImportByKey);
  }
  return {};
}

// The two calls of the runtime. A refusal is put into words before the thread gets its device back: that is a call too,
// and the runtime keeps the reason of the last one only.
Result<void*> import_now(const ImportRecord& record, bool by_flag) noexcept {
  const RuntimeRecord& runtime = *record.session.record;
  const CurrentDevice current(runtime, record.device);
  const std::uint64_t flags = by_flag ? acl::ipc_import::enable_peer_access : acl::ipc_import::plain;
  void* address = nullptr;
  acl::aclError code = current.code();
  if (code == 0) code = runtime.table.aclrtIpcMemImportByKey(&address, record.key(), flags);
  if (code == 0) return address;
  return refuse(record, Operation::import_key, acl::Entry::aclrtIpcMemImportByKey, code);
}

Result<void> close_now(const ImportRecord& record) noexcept {
  const RuntimeRecord& runtime = *record.session.record;
  const CurrentDevice current(runtime, record.device);
  acl::aclError code = current.code();
  if (code == 0) code = runtime.table.aclrtIpcMemClose(record.key());
  if (code == 0) return {};
  return refuse(record, Operation::close_import, acl::Entry::aclrtIpcMemClose, code);
}

void drop_reference(ImportRecord* record) noexcept {
  if (--record->references == 0) delete record;
}

void count_cross_device(ImportRecord& record, bool open) noexcept {
  if (!record.cross_device || !record.session.alive()) return;
  __atomic_fetch_add(&cross_device_imports, open ? 1u : ~0u, __ATOMIC_RELEASE);
}

ImportValue value_of(ImportRecord* record, const TicketFields& ticket) noexcept {
  return {.record = record,
          .address = static_cast<std::byte*>(record->address) + ticket.slice_offset,
          .size = static_cast<std::size_t>(ticket.slice_size),
          .device = record->device,
          .mechanism = ticket.mechanism};
}

}  // namespace

Result<ImportValue> open_import(const ReceivedTicket& ticket, const Device& device, const PeerAccess* grant,
                                AccessMode access) noexcept {
  const TicketFields& fields = ticket.fields();
  const Session& session = device.session();
  if (!session.alive()) return unusable(session, Operation::import_key);
  DEVSHARE_CHECK(check_ticket(fields, device, grant, access));
  listen_once();

  Registry& all = registry();
  const std::string_view name(reinterpret_cast<const char*>(fields.payload.data()), fields.payload_size);
  ImportRecord* record = nullptr;
  {
    std::unique_lock lock(mutex_of(Lock::imports));
    for (;;) {
      const auto found = all.records.find(name);
      if (found == all.records.end()) break;
      record = found->second;
      if (!same_export(record->fields, fields)) return refuse(Errc::stale_token, fields, device);
      if (record->device != device.number()) return refuse(Errc::already_imported, fields, device);  // R25
      if (record->state == State::open) {
        ++record->references;
        return value_of(record, fields);
      }
      ++record->references;
      const State waited_for = record->state;
      all.changed.wait(lock, [&] { return record->state != waited_for; });
      if (record->state == State::failed && waited_for == State::opening) {
        const Error error = record->error;
        drop_reference(record);
        return error;
      }
      --record->references;
      if (record->state == State::failed && record->references == 0) delete record;
    }
    record = new ImportRecord;
    record->session = session;
    record->fields = fields;
    record->device = device.number();
    record->cross_device = fields.owner_device != driver_number(*session.record, device.number());
    record->references = 1;
    all.records.emplace(record->name(), record);
  }

  const Result<void*> imported = import_now(*record, grant == nullptr);
  const std::lock_guard lock(mutex_of(Lock::imports));
  if (imported) {
    record->address = *imported;
    record->state = State::open;
    count_cross_device(*record, true);
    all.changed.notify_all();
    return value_of(record, fields);
  }
  const Error error = imported.error();
  record->state = State::failed;
  record->error = error;
  remove(*record);
  all.changed.notify_all();
  drop_reference(record);
  return error;
}

// The last reference closes the import. Meanwhile the record stays in the table as `closing`, so that a new open of
// the same key waits instead of meeting an import that is half gone.
Result<void> ImportPolicy::close(const Session&, const Value& value) noexcept {
  ImportRecord* const record = value.record;
  Registry& all = registry();
  {
    const std::lock_guard lock(mutex_of(Lock::imports));
    if (--record->references != 0) return {};
    record->state = State::closing;
    record->references = 1;
    count_cross_device(*record, false);
  }
  const Result<void> closed = close_now(*record);
  const std::lock_guard lock(mutex_of(Lock::imports));
  record->state = State::failed;
  remove(*record);
  all.changed.notify_all();
  drop_reference(record);
  return closed;
}

void ImportPolicy::abandon(const Value& value) noexcept {
  const std::lock_guard lock(mutex_of(Lock::imports));
  drop_reference(value.record);
}

Result<void> check_import(const Session& session, const ImportValue& value) noexcept {
  if (!session.alive()) return unusable(session, Operation::use_import);
  const ImportRecord& record = *value.record;
  const bool gone = session.record->extras.import_gone != nullptr
                        ? session.record->extras.import_gone(record.address)
                        : process_alive(record.fields.exporter) == Alive::no;
  if (!gone) return {};
  return Error(Errc::exporter_gone, Operation::use_import,
               {.device = record.device, .peer_device = record.fields.owner_device, .pid = record.fields.exporter.pid});
}

bool inside_cross_device_import(const void* address) noexcept {
  const std::lock_guard lock(mutex_of(Lock::imports));
  for (const auto& [name, record] : registry().records) {
    if (record->state != State::open || !record->cross_device) continue;
    const auto* const begin = static_cast<const std::byte*>(record->address);
    if (address >= begin && address < begin + record->fields.block_size) return true;
  }
  return false;
}

}  // namespace devshare::detail
