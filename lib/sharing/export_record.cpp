// SPDX-License-Identifier: Apache-2.0
// Exports by key: GetExportKey, SetImportPid, Close, and the tickets that name them.
#include "../core/process_identity.hpp"
#include "../core/runtime_state.hpp"
#include "ticket_codec.hpp"

#include <devshare/exported.hpp>

#include <algorithm>
#include <array>
#include <cstring>

namespace devshare::detail {

// Immutable from the moment it is made, so that several threads may admit at once.
struct ExportRecord {
  TicketFields fields;  // of the whole block; a ticket is this with its slice
  std::int32_t device = -1;
  void* address = nullptr;

  const char* key() const noexcept { return reinterpret_cast<const char*>(fields.payload.data()); }
};

namespace {

Error refuse(const Session& session, const ExportRecord& record, Operation operation, acl::Entry entry,
             acl::aclError code, std::int32_t pid = 0) noexcept {
  return refusal(*session.record, operation, entry, code,
                 {.device = record.device, .pid = pid, .needed = record.fields.block_size});
}

// The part of the block that a slice names, checked without overflow; {0, 0} is the whole.
Result<Slice> resolve(const ExportRecord& record, Slice slice, Operation operation) noexcept {
  const std::uint64_t block = record.fields.block_size;
  if (slice.offset == 0 && slice.size == 0) return Slice{0, static_cast<std::size_t>(block)};
  if (slice.size == 0 || slice.offset > block || slice.size > block - slice.offset) {
    return Error(Errc::out_of_range, operation,
                 {.device = record.device, .needed = slice.offset + slice.size, .available = block});
  }
  return slice;
}

TicketBytes ticket_for(const ExportRecord& record, Slice slice) noexcept {
  TicketFields fields = record.fields;
  fields.slice_offset = slice.offset;
  fields.slice_size = slice.size;
  return encode_ticket(fields);
}

// One call of the runtime for at most 31 pids (R16).
Result<void> admit_some(const Session& session, const ExportRecord& record, std::span<const BarePid> pids) noexcept {
  std::array<std::int32_t, acl::max_import_pids_per_call> numbers{};
  std::transform(pids.begin(), pids.end(), numbers.begin(), [](BarePid pid) { return pid.to_message(); });
  const CurrentDevice current(*session.record, record.device);
  acl::aclError code = current.code();
  if (code == 0) code = session.record->table.aclrtIpcMemSetImportPid(record.key(), numbers.data(), pids.size());
  if (code == 0) return {};
  return refuse(session, record, Operation::admit, acl::Entry::aclrtIpcMemSetImportPid, code, numbers[0]);
}

}  // namespace

Result<ExportValue> open_key_export(const Device& device, void* address, std::size_t size, bool unrestricted) noexcept {
  constexpr Operation operation = Operation::export_key;
  if (address == nullptr || size == 0) return Error(Errc::closed, operation);  // memory that was moved from
  const Session& session = device.session();
  if (!session.alive()) return unusable(session, operation);
  const RuntimeRecord& runtime = *session.record;
  if (runtime.table.aclrtIpcMemGetExportKey == nullptr || runtime.table.aclrtIpcMemClose == nullptr) {
    return lacking(operation, acl::Entry::aclrtIpcMemGetExportKey);
  }
  if (!unrestricted && runtime.table.aclrtIpcMemSetImportPid == nullptr) {
    return lacking(operation, acl::Entry::aclrtIpcMemSetImportPid);
  }
  auto* const record = new ExportRecord;
  record->device = device.number();
  record->address = address;
  TicketFields& fields = record->fields;
  fields.mechanism = Mechanism::by_key;
  fields.access = AccessMode::read_write;
  fields.unrestricted = unrestricted;
  fields.payload_size = acl::ipc_key_size;
  fields.owner_device = driver_number(runtime, device.number());
  fields.block_size = size;
  fields.slice_size = size;
  fields.nonce = new_nonce();
  fields.exporter = own_identity();

  const std::uint64_t flags = unrestricted ? acl::ipc_export::disable_pid_validation : acl::ipc_export::listed;
  const CurrentDevice current(runtime, device.number());
  acl::aclError code = current.code();
  if (code == 0) {
    code = runtime.table.aclrtIpcMemGetExportKey(address, size, reinterpret_cast<char*>(fields.payload.data()),
                                                 acl::ipc_key_size, flags);
  }
  if (code == 0) return ExportValue{record};
  const Error error = refuse(session, *record, operation, acl::Entry::aclrtIpcMemGetExportKey, code);
  delete record;
  return error;
}

Result<TicketBytes> admit(const Owned<ExportPolicy>& owned, std::span<const BarePid> pids, Slice slice) noexcept {
  const Session& session = owned.session();
  if (!session.alive()) return unusable(session, Operation::admit);
  const ExportRecord& record = *owned.value().record;
  DEVSHARE_TRY(part, resolve(record, slice, Operation::admit));
  const auto impossible = std::find_if(pids.begin(), pids.end(), [](BarePid pid) { return pid.to_message() <= 0; });
  if (pids.empty() || impossible != pids.end()) {
    return Error(Errc::invalid_argument, Operation::admit,
                 {.device = record.device, .pid = pids.empty() ? 0 : impossible->to_message()});
  }
  while (!pids.empty()) {
    const std::size_t count = std::min(pids.size(), acl::max_import_pids_per_call);
    DEVSHARE_CHECK(admit_some(session, record, pids.first(count)));
    pids = pids.subspan(count);
  }
  return ticket_for(record, part);
}

Result<TicketBytes> issue_ticket(const Owned<ExportPolicy>& owned, Slice slice) noexcept {
  if (!owned.session().alive()) return unusable(owned.session(), Operation::issue_ticket);
  const ExportRecord& record = *owned.value().record;
  DEVSHARE_TRY(part, resolve(record, slice, Operation::issue_ticket));
  return ticket_for(record, part);
}

void ExportPolicy::abandon(const Value& value) noexcept { delete value.record; }

const void* ExportPolicy::identity(const Value& value) noexcept { return value.record->address; }

// The record goes with the key. Where the runtime refuses, it stays: Exported then still has it, or parks its memory.
Result<void> ExportPolicy::close(const Session& session, const Value& value) noexcept {
  const ExportRecord& record = *value.record;
  const CurrentDevice current(*session.record, record.device);
  acl::aclError code = current.code();
  if (code == 0) code = session.record->table.aclrtIpcMemClose(record.key());
  if (code != 0) return refuse(session, record, Operation::close_export, acl::Entry::aclrtIpcMemClose, code);
  delete value.record;
  return {};
}

}  // namespace devshare::detail
