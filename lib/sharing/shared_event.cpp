// SPDX-License-Identifier: Apache-2.0
// Events between processes: created, opened, recorded and waited for.
#include <devshare/shared_event.hpp>

#include "../core/process_identity.hpp"
#include "../core/runtime_state.hpp"
#include "../dma/device_call.hpp"
#include "sync_ticket.hpp"

#include <cstring>

namespace devshare {

using acl::Table;
using detail::call_on;

namespace {

using Owned = detail::Owned<detail::SharedEventPolicy>;
static_assert(sizeof(acl::aclrtIpcEventHandle) <= sizeof(detail::SyncTicketFields::name));

template <auto entry, class... Arguments>
Result<void> call_with(const Owned& event, std::int32_t device, Operation operation, Arguments... arguments) noexcept {
  if (!event.holds()) return Error(Errc::closed, operation);
  return call_on<entry>(event.session(), device, operation, arguments...);
}

}  // namespace

Result<void> AnySharedEvent::record(const StreamRef& stream) const noexcept {
  return call_with<&Table::aclrtRecordEvent>(owned_, stream.device().number(), Operation::record_event,
                                             owned_.value().native, stream.native_handle());
}

Result<void> AnySharedEvent::hold_up(const StreamRef& stream) const noexcept {
  return call_with<&Table::aclrtStreamWaitEvent>(owned_, stream.device().number(), Operation::wait_event,
                                                 stream.native_handle(), owned_.value().native);
}

Result<void> AnySharedEvent::synchronize() const noexcept {
  return call_with<&Table::aclrtSynchronizeEvent>(owned_, owned_.value().device, Operation::synchronize,
                                                  owned_.value().native);
}

Result<void> AnySharedEvent::synchronize(Deadline deadline) const noexcept {
  return call_with<&Table::aclrtSynchronizeEventWithTimeout>(owned_, owned_.value().device, Operation::synchronize,
                                                             owned_.value().native, detail::timeout_until(deadline));
}

Result<SharedEvent> SharedEvent::create(const Device& device) noexcept {
  acl::aclrtEvent native = nullptr;
  DEVSHARE_CHECK(call_on<&Table::aclrtCreateEventExWithFlag>(device.session(), device.number(), Operation::create_event,
                                                             &native, acl::event_flag::ipc));
  return SharedEvent(device.session(), {native, device.number()});
}

Result<EventTicket> SharedEvent::ticket() const noexcept {
  DEVSHARE_TRY(self, detail::own_identity(Operation::export_event));
  acl::aclrtIpcEventHandle handle{};
  DEVSHARE_CHECK(call_with<&Table::aclrtIpcGetEventHandle>(owned_, owned_.value().device, Operation::export_event,
                                                           owned_.value().native, &handle));
  detail::SyncTicketFields fields;
  fields.owner_device = detail::driver_number(*owned_.session().record, owned_.value().device);
  fields.exporter = self;
  std::memcpy(fields.name.data(), handle.reserved, sizeof handle.reserved);
  return EventTicket(detail::encode_sync_ticket(detail::SyncKind::event, fields));
}

Result<void, Refused<SharedEvent>> SharedEvent::close() && noexcept {
  return detail::close_or_give_back(*this, owned_, Operation::end_event);
}

Result<ImportedEvent> ImportedEvent::open(const ReceivedEventTicket& ticket, const Device& device) noexcept {
  DEVSHARE_CHECK(detail::check_sync_ticket(ticket.fields(), device, Operation::import_event));
  acl::aclrtIpcEventHandle handle{};
  std::memcpy(handle.reserved, ticket.fields().name.data(), sizeof handle.reserved);
  acl::aclrtEvent native = nullptr;
  DEVSHARE_CHECK(call_on<&Table::aclrtIpcOpenEventHandle>(device.session(), device.number(), Operation::import_event,
                                                          handle, &native));
  return ImportedEvent(device.session(), {native, device.number()});
}

Result<void, Refused<ImportedEvent>> ImportedEvent::close() && noexcept {
  return detail::close_or_give_back(*this, owned_, Operation::end_event);
}

Result<void> detail::SharedEventPolicy::close(const Session& session, const Value& value) noexcept {
  return call_on<&Table::aclrtDestroyEvent>(session, value.device, Operation::end_event, value.native);
}

}  // namespace devshare
