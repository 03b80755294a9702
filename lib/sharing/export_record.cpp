// SPDX-License-Identifier: Apache-2.0
// Exports once they exist: who is admitted, and the tickets that name them.
#include "export_record.hpp"

#include "ticket_codec.hpp"

#include <algorithm>
#include <array>

namespace devshare::detail {
namespace {

// The part of the block that a slice names, checked without overflow; {0, 0} is all that was asked for.
Result<Slice> resolve(const ExportRecord& record, Slice slice, Operation operation) noexcept {
  const std::uint64_t block = record.fields.slice_size;  // as asked for: whole pages may be more
  if (slice.offset == 0 && slice.size == 0) return Slice{0, static_cast<std::size_t>(block)};
  if (slice.size == 0 || slice.offset > block || slice.size > block - slice.offset) {
    std::uint64_t end = 0;
    if (__builtin_add_overflow(slice.offset, slice.size, &end)) end = UINT64_MAX;
    return Error(Errc::out_of_range, operation, {.device = record.device, .needed = end, .available = block});
  }
  return slice;
}

TicketBytes ticket_for(const ExportRecord& record, Slice slice, AccessMode access) noexcept {
  TicketFields fields = record.fields;
  fields.access = access;
  fields.slice_offset = slice.offset;
  fields.slice_size = slice.size;
  return encode_ticket(fields);
}

// One call of the runtime for at most 31 pids: what a key takes at once (R16) serves a handle as well.
Result<void> admit_some(const Session& session, const ExportRecord& record, std::span<const BarePid> pids) noexcept {
  std::array<std::int32_t, acl::max_import_pids_per_call> storage{};
  std::transform(pids.begin(), pids.end(), storage.begin(), [](BarePid pid) { return pid.to_message(); });
  const std::span<std::int32_t> numbers = std::span(storage).first(pids.size());
  const CurrentDevice current(*session.record, record.device);
  if (current.code() != 0) {
    return record.refuse(session, Operation::admit, acl::Entry::aclrtSetDevice, current.code(), numbers[0]);
  }
  return record.fields.mechanism == Mechanism::by_key ? admit_to_key(session, record, numbers)
                                                      : admit_to_handle(session, record, numbers);
}

// Nobody can be taken off a list again: the error says who is on it.
Error stopped_half_way(const Error& refused, std::size_t admitted, std::span<const BarePid> pids) noexcept {
  Detail detail = refused.detail();
  detail.pid = pids[admitted].to_message();
  detail.needed = pids.size();
  detail.available = admitted;
  return Error(Operation::admit, refused.entry(), refused.acl_code(), refused.reason(), detail);
}

}  // namespace

Result<TicketBytes> admit(const Owned<ExportPolicy>& owned, std::span<const BarePid> pids, Slice slice,
                          AccessMode access) noexcept {
  const Session& session = owned.session();
  if (!session.alive()) return unusable(session, Operation::admit);
  const ExportRecord& record = *owned.value().record;
  DEVSHARE_TRY(part, resolve(record, slice, Operation::admit));
  const auto impossible = std::find_if(pids.begin(), pids.end(), [](BarePid pid) { return pid.to_message() <= 0; });
  if (pids.empty() || impossible != pids.end()) {
    return Error(Errc::invalid_argument, Operation::admit,
                 {.device = record.device, .pid = pids.empty() ? 0 : impossible->to_message()});
  }
  for (std::size_t admitted = 0; admitted < pids.size();) {
    const std::size_t count = std::min(pids.size() - admitted, acl::max_import_pids_per_call);
    if (auto done = admit_some(session, record, pids.subspan(admitted, count)); !done) {
      return admitted == 0 ? done.error() : stopped_half_way(done.error(), admitted, pids);
    }
    admitted += count;
  }
  return ticket_for(record, part, access);
}

Result<TicketBytes> issue_ticket(const Owned<ExportPolicy>& owned, Slice slice, AccessMode access) noexcept {
  if (!owned.session().alive()) return unusable(owned.session(), Operation::issue_ticket);
  const ExportRecord& record = *owned.value().record;
  DEVSHARE_TRY(part, resolve(record, slice, Operation::issue_ticket));
  return ticket_for(record, part, access);
}

template <class M>
Result<Ticket<M>> TicketOffice<M>::admit(const Owned<ExportPolicy>& owned, std::span<const BarePid> pids, Slice slice,
                                         AccessMode access) noexcept {
  DEVSHARE_TRY(bytes, detail::admit(owned, pids, slice, access));
  return Ticket<M>(bytes);
}

template <class M>
Result<Ticket<M>> TicketOffice<M>::issue(const Owned<ExportPolicy>& owned, Slice slice, AccessMode access) noexcept {
  DEVSHARE_TRY(bytes, issue_ticket(owned, slice, access));
  return Ticket<M>(bytes);
}

template struct TicketOffice<by_key>;
template struct TicketOffice<v1>;
template struct TicketOffice<v2>;
template struct TicketOffice<fabric>;

void ExportPolicy::abandon(const Value& value) noexcept { delete value.record; }

const void* ExportPolicy::identity(const Value& value) noexcept { return value.record->identity; }

// The record goes with the export. Where the runtime refuses, it stays: Exported then still has it, or parks its
// memory.
Result<void> ExportPolicy::close(const Session& session, const Value& value) noexcept {
  if (value.record->fields.mechanism == Mechanism::by_key) DEVSHARE_CHECK(close_key(session, *value.record));
  delete value.record;
  return {};
}

}  // namespace devshare::detail
