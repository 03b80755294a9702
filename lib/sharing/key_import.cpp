// SPDX-License-Identifier: Apache-2.0
// Imports by key: ImportByKey and Close. A refusal is put into words before the thread gets its device back: that is a
// call too, and the runtime keeps the reason of the last one only.
#include "../core/host_wish.hpp"
#include "import_check.hpp"
#include "import_record.hpp"

namespace devshare::detail {
namespace {

const char* key_of(const ImportRecord& record) noexcept {
  return reinterpret_cast<const char*>(record.fields.payload.data());
}

}  // namespace

Result<void> open_by_key(ImportRecord& record, bool enable_peer_access) noexcept {
  const RuntimeRecord& runtime = *record.session.record;
  const CurrentDevice current(runtime, record.device);
  const ReadingOnly reading(runtime, record.access);
  const HostWishes wishes(runtime, {.populate = record.populate});
  const std::uint64_t flags = enable_peer_access ? acl::ipc_import::enable_peer_access : acl::ipc_import::plain;
  acl::aclError code = current.code();
  if (code == 0) code = runtime.table.aclrtIpcMemImportByKey(&record.address, key_of(record), flags);
  if (code == 0) return {};
  return refuse_import(record.session, record.fields, record.device, Operation::import_key,
                       acl::Entry::aclrtIpcMemImportByKey, code);
}

Result<void> close_by_key(ImportRecord& record) noexcept {
  const RuntimeRecord& runtime = *record.session.record;
  const CurrentDevice current(runtime, record.device);
  acl::aclError code = current.code();
  if (code == 0) code = runtime.table.aclrtIpcMemClose(key_of(record));
  if (code == 0) return {};
  return refuse_import(record.session, record.fields, record.device, Operation::close_import,
                       acl::Entry::aclrtIpcMemClose, code);
}

}  // namespace devshare::detail
