// SPDX-License-Identifier: Apache-2.0
// Exports of physical handles. A handle has one export for its life (R27): the first one is made by the runtime and
// remembered in the handle's record, every later one of the same kind is that one again.
#include "../core/locks.hpp"
#include "../core/process_identity.hpp"
#include "../core/runtime_state.hpp"
#include "../dma/range.hpp"
#include "export_record.hpp"
#include "handle_calls.hpp"

#include <mutex>

namespace devshare::detail {
namespace {

constexpr Operation operation = Operation::export_handle;

bool same(const HandleExport& made, Mechanism kind, bool unrestricted) noexcept {
  return made.kind == kind && made.unrestricted == unrestricted;
}

// The runtime's part of an export.
Result<HandleExport> export_now(const HandleRecord& handle, Mechanism kind, bool unrestricted) noexcept {
  const RuntimeRecord& runtime = *handle.session.record;
  HandleExport made{.made = true,
                    .kind = kind,
                    .unrestricted = unrestricted,
                    .token_size = static_cast<std::uint8_t>(token_size_of(kind)),
                    .token = {},
                    .nonce = new_nonce()};
  const CurrentDevice current(runtime, handle.device);
  Called called{acl::Entry::aclrtSetDevice, current.code()};
  if (called.code == 0) called = export_token(runtime.table, kind, handle.handle, unrestricted, made.token);
  if (called.lacking) return lacking(operation, called.entry);
  if (called.code == 0) return made;
  return refusal(runtime, operation, called.entry, called.code,
                 {.device = handle.device, .needed = handle.physical_size});
}

// Whether what the runtime refused may be an export that it has already: where it says why, it has to be that.
bool may_be_exported_already(const Error& refused) noexcept {
  return refused.reason() == Error::Reason::already_exported ||
         (refused.reason() == Error::Reason::none && refused.acl_code() != 0);
}

// The handle's export as it is asked for, made now if it has none. Of two threads that both ask first, one makes it and
// the other waits for that.
Result<HandleExport> export_of(HandleRecord& handle, Mechanism kind, bool unrestricted) noexcept {
  const Error other(Errc::already_exported_as, operation, {.device = handle.device});
  std::unique_lock lock(mutex_of(Lock::handles));
  handle_exports_changed().wait(lock, [&] { return !handle.exporting; });
  if (!handle.exported.made) {
    handle.exporting = true;
    lock.unlock();
    const Result<HandleExport> made = export_now(handle, kind, unrestricted);
    lock.lock();
    handle.exporting = false;
    handle_exports_changed().notify_all();
    if (made) {
      handle.exported = *made;
    } else {
      // Exported through a reference that has ended since, of memory that is its engine's: the token is the same still.
      const HandleExport* const before = remembered_export(handle.handle);
      if (before == nullptr || !may_be_exported_already(made.error())) return made.error();
      handle.exported = *before;
    }
  }
  if (same(handle.exported, kind, unrestricted)) return handle.exported;
  return other;
}

Result<ExportValue> open_export(HandleRecord& handle, Mechanism kind, bool unrestricted) noexcept {
  const RuntimeRecord& runtime = *handle.session.record;
  DEVSHARE_TRY(self, own_identity(operation));  // first: an export cannot be undone
  DEVSHARE_TRY(exported, export_of(handle, kind, unrestricted));
  auto* const record = new ExportRecord;
  record->device = handle.device;
  record->identity = handle.handle;
  record->fields = {.mechanism = kind,
                    .access = AccessMode::read_write,
                    .unrestricted = unrestricted,
                    .payload_size = exported.token_size,
                    .owner_device = driver_number(runtime, handle.device),
                    .block_size = handle.physical_size,
                    .slice_offset = 0,
                    .slice_size = handle.size,
                    .nonce = exported.nonce,
                    .exporter = self,
                    .payload = exported.token};
  return ExportValue{record};
}

}  // namespace

Result<ExportValue> open_handle_export(const PhysicalHandle& handle, Mechanism kind, bool unrestricted) noexcept {
  const Session& session = handle.owned().session();
  if (!session.alive()) return unusable(session, operation);
  return open_export(*handle.owned().value().record, kind, unrestricted);
}

Result<ExportValue> open_handle_export(const Mapping& mapping, Mechanism kind, bool unrestricted) noexcept {
  const Session& session = mapping.owned().session();
  if (!session.alive()) return unusable(session, operation);
  const Range& range = *mapping.owned().value().range;
  if (range.pieces.size() != 1 || !range.released.empty()) {
    const Errc kind_of_refusal = range.released.empty() ? Errc::not_exportable : Errc::no_backing;
    return Error(kind_of_refusal, operation, {.device = range.device, .needed = 1, .available = range.pieces.size()});
  }
  return open_export(*range.pieces.front().handle, kind, unrestricted);
}

Result<void> admit_to_handle(const Session& session, const ExportRecord& record,
                             std::span<std::int32_t> pids) noexcept {
  const Called called = admit_to_token(session.record->table, record.fields.mechanism, record.fields.payload, pids);
  if (called.lacking) return lacking(Operation::admit, called.entry);
  if (called.code == 0) return {};
  return record.refuse(session, Operation::admit, called.entry, called.code, pids[0]);
}

}  // namespace devshare::detail
