// SPDX-License-Identifier: Apache-2.0
// The calls by which handles are shared, V1 and V2, behind one set of functions: which is meant says the mechanism.
#pragma once

#include <devshare/exported.hpp>

#include <cstring>

namespace devshare::detail {

inline constexpr std::size_t local_token_size = sizeof(std::uint64_t);
inline constexpr std::size_t fabric_token_size = sizeof(acl::aclrtMemFabricHandle);
using TokenBytes = std::array<std::byte, 128>;
static_assert(fabric_token_size == std::tuple_size_v<TokenBytes>);

constexpr std::size_t token_size_of(Mechanism kind) noexcept {
  return kind == Mechanism::fabric ? fabric_token_size : local_token_size;
}

// A call that was made, or could not be made because this runtime lacks it.
struct Called {
  acl::Entry entry;
  acl::aclError code = 0;
  bool lacking = false;
};

inline std::uint64_t number_of(const TokenBytes& token) noexcept {
  std::uint64_t number = 0;
  std::memcpy(&number, token.data(), sizeof number);
  return number;
}

inline acl::aclrtMemSharedHandleType share_type_of(Mechanism kind) noexcept {
  return kind == Mechanism::fabric ? acl::share_type::fabric : acl::share_type::local;
}

inline Called export_token(const acl::Table& table, Mechanism kind, acl::aclrtDrvMemHandle handle, bool unrestricted,
                           TokenBytes& token) noexcept {
  const std::uint64_t flags = unrestricted ? acl::vmm_export::disable_pid_validation : acl::vmm_export::listed;
  if (kind == Mechanism::v1) {
    constexpr acl::Entry entry = acl::Entry::aclrtMemExportToShareableHandle;
    if (table.aclrtMemExportToShareableHandle == nullptr) return {entry, 0, true};
    std::uint64_t number = 0;
    const acl::aclError code =
        table.aclrtMemExportToShareableHandle(handle, acl::mem_handle_type::none, flags, &number);
    std::memcpy(token.data(), &number, sizeof number);
    return {entry, code};
  }
  constexpr acl::Entry entry = acl::Entry::aclrtMemExportToShareableHandleV2;
  if (table.aclrtMemExportToShareableHandleV2 == nullptr) return {entry, 0, true};
  return {entry, table.aclrtMemExportToShareableHandleV2(handle, flags, share_type_of(kind), token.data())};
}

inline Called admit_to_token(const acl::Table& table, Mechanism kind, TokenBytes token,
                             std::span<std::int32_t> pids) noexcept {
  if (kind == Mechanism::v1) {
    constexpr acl::Entry entry = acl::Entry::aclrtMemSetPidToShareableHandle;
    if (table.aclrtMemSetPidToShareableHandle == nullptr) return {entry, 0, true};
    return {entry, table.aclrtMemSetPidToShareableHandle(number_of(token), pids.data(), pids.size())};
  }
  constexpr acl::Entry entry = acl::Entry::aclrtMemSetPidToShareableHandleV2;
  if (table.aclrtMemSetPidToShareableHandleV2 == nullptr) return {entry, 0, true};
  return {entry, table.aclrtMemSetPidToShareableHandleV2(token.data(), share_type_of(kind), pids.data(), pids.size())};
}

// On the device that is current: V1 is told its number as well, V2 takes it from the thread.
inline Called import_token(const acl::Table& table, Mechanism kind, TokenBytes token, std::int32_t device,
                           acl::aclrtDrvMemHandle* handle) noexcept {
  if (kind == Mechanism::v1) {
    constexpr acl::Entry entry = acl::Entry::aclrtMemImportFromShareableHandle;
    if (table.aclrtMemImportFromShareableHandle == nullptr) return {entry, 0, true};
    return {entry, table.aclrtMemImportFromShareableHandle(number_of(token), device, handle)};
  }
  constexpr acl::Entry entry = acl::Entry::aclrtMemImportFromShareableHandleV2;
  if (table.aclrtMemImportFromShareableHandleV2 == nullptr) return {entry, 0, true};
  return {entry, table.aclrtMemImportFromShareableHandleV2(token.data(), share_type_of(kind), 0, handle)};
}

}  // namespace devshare::detail
