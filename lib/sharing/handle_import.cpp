// SPDX-License-Identifier: Apache-2.0
// Imports by handle: import, reserve, map, set access. All four happen or none (B007).
#include "import_record.hpp"
#include "imported_handles.hpp"

#include <devshare/diagnostic.hpp>
#include <devshare/imported_handle.hpp>

#include <utility>

namespace devshare {
namespace detail {
namespace {

// What has no one left to return its error to.
void report_undone(const Result<void>& undone, const void* object) noexcept {
  if (!undone) report({DiagnosticEvent::close_failed, undone.error(), object});
}

}  // namespace

Result<void> open_by_handle(ImportRecord& record) noexcept {
  constexpr Operation operation = Operation::import_handle;
  DEVSHARE_TRY(handle, import_handle(record.fields, device_of(record.session, record.device), record.access,
                                     record.populate));
  auto reserved = reserve_range(record.session, record.device, handle->physical_size, operation);
  if (!reserved) {
    (void)drop_or_park(handle);
    return reserved.error();
  }
  Range* const range = *reserved;
  if (auto mapped = map_piece(*range, handle, operation); !mapped) {
    report_undone(end_range(range, operation), nullptr);
    (void)drop_or_park(handle);
    return mapped.error();
  }
  record.range = range;
  record.address = range->address;
  return {};
}

Result<void> close_by_handle(ImportRecord& record) noexcept {
  constexpr Operation operation = Operation::close_import;
  auto handles = take_apart(record.range, operation);
  if (!handles) {
    record.range->released.clear();  // nobody wakes an import
    if (record.range->pieces.empty()) {
      Range* const range = std::exchange(record.range, nullptr);
      park(range, range->reserved, handles.error());
    }
    return handles.error();
  }
  record.range = nullptr;
  if (const std::optional<Error> refused = drop_all(*std::move(handles))) return *refused;
  return {};
}

}  // namespace detail

template <class Access>
Result<void, Refused<ImportedHandle>> BasicImportedMapping<Access>::extend(ImportedHandle&& handle) & noexcept {
  constexpr Operation operation = Operation::map_memory;
  const auto refuse = [&](const Error& error) { return Refused<ImportedHandle>(error, std::move(handle)); };
  if (!import_.session().alive()) return refuse(detail::unusable(import_.session(), operation));
  if (!handle.owned().session().alive()) return refuse(detail::unusable(handle.owned().session(), operation));
  detail::ImportValue value = import_.value();
  if (!value.record->piecewise) return refuse(Error(Errc::invalid_argument, operation, {.device = value.device}));
  detail::Range& range = *value.record->range;
  detail::HandleRecord* const piece = handle.owned().value().record;
  if (auto mapped = detail::map_piece(range, piece, operation); !mapped) return refuse(mapped.error());
  (void)std::move(handle).release();
  value.size = range.mapped();
  import_.set_value(value);
  return {};
}
template Result<void, Refused<ImportedHandle>> BasicImportedMapping<ReadWrite>::extend(ImportedHandle&&) & noexcept;
template Result<void, Refused<ImportedHandle>> BasicImportedMapping<ReadOnly>::extend(ImportedHandle&&) & noexcept;

Result<ImportedHandle> ImportedHandle::open(const ReceivedTicket& ticket, const Device& device,
                                            Populate populate) noexcept {
  DEVSHARE_TRY(value, detail::open_imported_handle(ticket, device, populate));
  return ImportedHandle(device.session(), value);
}

Result<void, Refused<ImportedHandle>> ImportedHandle::close() && noexcept {
  return detail::close_or_give_back(*this, owned_, Operation::free_handle);
}

Result<ImportedMapping, Refused<UnmappedImport>> AddressReservation::map(ImportedHandle&& handle) && noexcept {
  constexpr Operation operation = Operation::map_memory;
  const auto refuse = [&](const Error& error) {
    return Refused<UnmappedImport>(error, UnmappedImport{std::move(*this), std::move(handle)});
  };
  const detail::Session session = owned_.session();
  if (!session.alive()) return refuse(detail::unusable(session, operation));
  if (!handle.owned().session().alive()) return refuse(detail::unusable(handle.owned().session(), operation));
  detail::Range& range = *owned_.value().range;
  detail::HandleRecord* const mapped_handle = handle.owned().value().record;
  if (auto mapped = detail::map_piece(range, mapped_handle, operation); !mapped) return refuse(mapped.error());
  (void)std::move(handle).release();
  (void)owned_.release();
  auto* const record = new detail::ImportRecord;
  record->session = session;
  record->fields = detail::fields_of_imported(*mapped_handle);
  record->device = range.device;
  record->access = AccessMode::read_write;
  record->state = detail::SharedOpen::State::open;
  record->references = 1;
  record->address = range.address;
  record->range = &range;
  record->piecewise = true;
  return ImportedMapping(session,
                         {.record = record,
                          .address = range.address,
                          .size = range.mapped(),
                          .device = range.device,
                          .mechanism = record->fields.mechanism});
}

}  // namespace devshare
