// SPDX-License-Identifier: Apache-2.0
// Notifies between processes: created and exported at once, admitted to, imported.
#include <devshare/notify.hpp>

#include "../core/process_identity.hpp"
#include "../core/runtime_state.hpp"
#include "../dma/device_call.hpp"
#include "sync_ticket.hpp"

#include <cstring>
#include <utility>

namespace devshare {

using acl::Table;
using detail::call_on;
using detail::NotifyValue;

namespace {

using Owned = detail::Owned<detail::NotifyPolicy>;

// A call with a notify in a stream, on the stream's device.
template <auto entry, class... Arguments>
Result<void> in_stream(const Owned& notify, const StreamRef& stream, Operation operation, Arguments... more) noexcept {
  if (!notify.holds()) return Error(Errc::closed, operation);
  return call_on<entry>(notify.session(), stream.device().number(), operation, notify.value().native,
                        stream.native_handle(), more...);
}

}  // namespace

Result<SharedNotify> SharedNotify::create(const Device& device) noexcept {
  NotifyValue value;
  value.device = device.number();
  DEVSHARE_CHECK(call_on<&Table::aclrtCreateNotify>(device.session(), value.device, Operation::create_notify,
                                                    &value.native, acl::notify_flag::plain));
  Owned made(device.session(), value);  // ends it again where the export fails
  DEVSHARE_CHECK(call_on<&Table::aclrtNotifyGetExportKey>(device.session(), value.device, Operation::export_notify,
                                                          value.native, value.key.data(), value.key.size(),
                                                          acl::notify_export::listed));
  (void)made.release();
  return SharedNotify(device.session(), value);
}

Result<NotifyTicket> SharedNotify::admit(BarePid importer) const noexcept {
  if (!owned_.holds()) return Error(Errc::closed, Operation::admit);
  DEVSHARE_TRY(self, detail::own_identity(Operation::admit));
  std::int32_t pid = importer.to_message();
  DEVSHARE_CHECK(call_on<&Table::aclrtNotifySetImportPid>(owned_.session(), owned_.value().device, Operation::admit,
                                                          owned_.value().native, &pid, std::size_t{1}));
  detail::SyncTicketFields fields;
  fields.owner_device = detail::driver_number(*owned_.session().record, owned_.value().device);
  fields.exporter = self;
  std::memcpy(fields.name.data(), owned_.value().key.data(), fields.name.size());
  return NotifyTicket(detail::encode_sync_ticket(detail::SyncKind::notify, fields));
}

Result<void> SharedNotify::hold_up_within(const StreamRef& stream, std::uint32_t seconds) const noexcept {
  return in_stream<&Table::aclrtWaitAndResetNotify>(owned_, stream, Operation::wait_notify, seconds);
}

Result<void> SharedNotify::record(const StreamRef& stream) const noexcept {
  return in_stream<&Table::aclrtRecordNotify>(owned_, stream, Operation::record_notify);
}

Result<void> SharedNotify::reset() const noexcept {
  if (!owned_.holds()) return Error(Errc::closed, Operation::reset_notify);
  acl::aclrtNotify native = owned_.value().native;
  return call_on<&Table::aclrtNotifyBatchReset>(owned_.session(), owned_.value().device, Operation::reset_notify,
                                                &native, std::size_t{1});
}

Result<void, Refused<SharedNotify>> SharedNotify::close() && noexcept {
  return detail::close_or_give_back(*this, owned_, Operation::end_notify);
}

Result<ImportedNotify> ImportedNotify::open(const ReceivedNotifyTicket& ticket, const Device& device) noexcept {
  DEVSHARE_CHECK(detail::check_sync_ticket(ticket.fields(), device, Operation::import_notify));
  NotifyValue value;
  value.device = device.number();
  std::memcpy(value.key.data(), ticket.fields().name.data(), value.key.size());
  DEVSHARE_CHECK(call_on<&Table::aclrtNotifyImportByKey>(device.session(), value.device, Operation::import_notify,
                                                         &value.native, static_cast<const char*>(value.key.data()),
                                                         acl::notify_import::enable_peer_access));
  return ImportedNotify(device.session(), value);
}

Result<void> ImportedNotify::record(const StreamRef& stream) const noexcept {
  return in_stream<&Table::aclrtRecordNotify>(owned_, stream, Operation::record_notify);
}

Result<void, Refused<ImportedNotify>> ImportedNotify::close() && noexcept {
  return detail::close_or_give_back(*this, owned_, Operation::end_notify);
}

Result<void> detail::NotifyPolicy::close(const Session& session, const Value& value) noexcept {
  return call_on<&Table::aclrtDestroyNotify>(session, value.device, Operation::end_notify, value.native);
}

}  // namespace devshare
