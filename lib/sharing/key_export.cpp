// SPDX-License-Identifier: Apache-2.0
// Exports by key: GetExportKey, SetImportPid, Close.
#include "../core/process_identity.hpp"
#include "../core/runtime_state.hpp"
#include "export_record.hpp"

namespace devshare::detail {
namespace {

const char* key_of(const ExportRecord& record) noexcept {
  return reinterpret_cast<const char*>(record.fields.payload.data());
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
  DEVSHARE_TRY(self, own_identity(operation));
  auto* const record = new ExportRecord;
  record->device = device.number();
  record->identity = address;
  TicketFields& fields = record->fields;
  fields.mechanism = Mechanism::by_key;
  fields.access = AccessMode::read_write;
  fields.unrestricted = unrestricted;
  fields.payload_size = acl::ipc_key_size;
  fields.owner_device = driver_number(runtime, device.number());
  fields.block_size = size;
  fields.slice_size = size;
  fields.nonce = new_nonce();
  fields.exporter = self;

  const std::uint64_t flags = unrestricted ? acl::ipc_export::disable_pid_validation : acl::ipc_export::listed;
  const CurrentDevice current(runtime, device.number());
  acl::aclError code = current.code();
  if (code == 0) {
    code = runtime.table.aclrtIpcMemGetExportKey(address, size, reinterpret_cast<char*>(fields.payload.data()),
                                                 acl::ipc_key_size, flags);
  }
  if (code == 0) return ExportValue{record};
  const Error error = record->refuse(session, operation, acl::Entry::aclrtIpcMemGetExportKey, code);
  delete record;
  return error;
}

Result<void> admit_to_key(const Session& session, const ExportRecord& record, std::span<std::int32_t> pids) noexcept {
  const acl::aclError code = session.record->table.aclrtIpcMemSetImportPid(key_of(record), pids.data(), pids.size());
  if (code == 0) return {};
  return record.refuse(session, Operation::admit, acl::Entry::aclrtIpcMemSetImportPid, code, pids[0]);
}

Result<void> close_key(const Session& session, const ExportRecord& record) noexcept {
  const CurrentDevice current(*session.record, record.device);
  acl::aclError code = current.code();
  if (code == 0) code = session.record->table.aclrtIpcMemClose(key_of(record));
  if (code == 0) return {};
  return record.refuse(session, Operation::close_export, acl::Entry::aclrtIpcMemClose, code);
}

}  // namespace devshare::detail
