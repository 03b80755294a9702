// SPDX-License-Identifier: Apache-2.0
#include "remote_error.hpp"

#include "../core/notes.hpp"

#include <devshare/explain.hpp>

#include <string>

#include <fmt/format.h>

namespace devshare::detail {
namespace {

constexpr std::string_view unknown = "unknown";

template <class Enum>
Enum known_or(std::uint16_t number, Enum otherwise) noexcept {
  const auto value = static_cast<Enum>(number);
  return name_of(value) == unknown ? otherwise : value;
}

}  // namespace

RemoteError to_message(const Error& error) noexcept {
  return {.kind = static_cast<std::uint16_t>(error.kind()),
          .operation = static_cast<std::uint16_t>(error.operation()),
          .entry = static_cast<std::uint16_t>(error.entry()),
          .reason = static_cast<std::uint16_t>(error.reason()),
          .acl_code = error.acl_code(),
          .system_errno = error.detail().system_errno,
          .needed = error.detail().needed,
          .available = error.detail().available};
}

Error from_message(const RemoteError& remote, Operation operation, std::int32_t pid) noexcept {
  const Errc kind = known_or(remote.kind, Errc::refused);
  const Operation failed = known_or(remote.operation, Operation::none);
  const auto entry = name_of(static_cast<acl::Entry>(remote.entry)) == "no call" ? acl::Entry::none
                                                                                   : static_cast<acl::Entry>(remote.entry);
  const Error error(kind, operation, entry, remote.acl_code, known_or(remote.reason, Error::Reason::none),
                    {.pid = pid,
                     .system_errno = remote.system_errno,
                     .needed = remote.needed,
                     .available = remote.available});
  if (failed == Operation::none || failed == operation) return error;
  return error.with_note(keep_note(fmt::format("the other side could not {}", name_of(failed))));
}

}  // namespace devshare::detail
