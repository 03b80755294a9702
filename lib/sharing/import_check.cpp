// SPDX-License-Identifier: Apache-2.0
#include "import_check.hpp"

#include "../core/process_identity.hpp"
#include "../core/runtime_state.hpp"

namespace devshare::detail {
namespace {

Error refuse(Errc kind, const TicketFields& fields, std::int32_t device, Operation operation) noexcept {
  return Error(
      kind, operation,
      {.device = device, .peer_device = fields.owner_device, .pid = fields.exporter.pid, .needed = fields.block_size});
}

// Whether two tickets with one name are of one export: the nonce tells, should a runtime use a name twice.
bool same_export(const TicketFields& a, const TicketFields& b) noexcept {
  return a.nonce == b.nonce && a.block_size == b.block_size && a.exporter == b.exporter;
}

}  // namespace

Result<void> check_ticket(const TicketFields& fields, const Device& device, const PeerAccess* grant, AccessMode access,
                          Operation operation) noexcept {
  const RuntimeRecord& runtime = *device.session().record;
  const auto no = [&](Errc kind) { return refuse(kind, fields, device.number(), operation); };
  DEVSHARE_TRY(self, own_identity(operation));
  if (fields.exporter == self) return no(Errc::self_import);
  const bool reaches_other_servers = fields.mechanism == Mechanism::fabric;
  if (!reaches_other_servers && fields.exporter.boot_id != self.boot_id) return no(Errc::different_host);
  if (access == AccessMode::read_write && fields.access != AccessMode::read_write) return no(Errc::access_mismatch);
  if (grant != nullptr) {
    const std::int32_t owner = local_number(runtime, fields.owner_device);
    if (owner < 0 || !grant->joins(device, device_of(device.session(), owner))) return no(Errc::peer_mismatch);
  }
  return {};
}

Result<void> may_share(const Opened& open, const TicketFields& fields, const Device& device, AccessMode access,
                       Operation operation) noexcept {
  const auto no = [&](Errc kind) { return refuse(kind, fields, device.number(), operation); };
  if (!same_export(open.fields, fields)) return no(Errc::stale_token);
  if (open.device != device.number()) return no(Errc::already_imported);
  if (access == AccessMode::read_write && open.access == AccessMode::read_only) return no(Errc::access_mismatch);
  return {};
}

Error refuse_import(const Session& session, const TicketFields& fields, std::int32_t device, Operation operation,
                    acl::Entry entry, acl::aclError code) noexcept {
  return refusal(
      *session.record, operation, entry, code,
      {.device = device, .peer_device = fields.owner_device, .pid = fields.exporter.pid, .needed = fields.block_size});
}

}  // namespace devshare::detail
