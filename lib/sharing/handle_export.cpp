// SPDX-License-Identifier: Apache-2.0
// Exports of physical handles. A handle has one export for its life (R27): the first one is made by the runtime and
// remembered in the handle's record, every later one of the same kind is that one again.
#include "../core/locks.hpp"
#include "../core/process_identity.hpp"
#include "../core/runtime_state.hpp"
#include "../dma/range.hpp"
#include "export_record.hpp"
#include "handle_calls.hpp"

namespace devshare::detail {
namespace {

constexpr Operation operation = Operation::export_handle;

// The handle's export as it is asked for, made now if it has none. Two threads that both ask first: the runtime allows
// one of them, and the other finds its record made.
Result<HandleExport> export_of(HandleRecord& handle, Mechanism kind, bool unrestricted) noexcept {
  const auto same = [&](const HandleExport& made) { return made.kind == kind && made.unrestricted == unrestricted; };
  const auto other = [&] { return Error(Errc::already_exported_as, operation, {.device = handle.device}); };
  {
    const std::lock_guard lock(mutex_of(Lock::handles));
    if (handle.exported.made) {
      if (same(handle.exported)) return handle.exported;
      return other();
    }
  }
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
  const Error refused =
      refusal(runtime, operation, called.entry, called.code, {.device = handle.device, .needed = handle.physical_size});
  const std::lock_guard lock(mutex_of(Lock::handles));
  if (called.code == 0) handle.exported = made;
  if (!handle.exported.made) return refused;
  if (same(handle.exported)) return handle.exported;
  return other();
}

Result<ExportValue> open_export(HandleRecord& handle, Mechanism kind, bool unrestricted) noexcept {
  const RuntimeRecord& runtime = *handle.session.record;
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
                    .exporter = own_identity(),
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
  if (range.pieces.size() != 1) {
    const Errc kind_of_refusal = range.pieces.empty() ? Errc::no_backing : Errc::not_exportable;
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
