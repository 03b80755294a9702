// SPDX-License-Identifier: Apache-2.0
// One call of the runtime on a device, with all that belongs around it.
#pragma once

#include <devshare/deadline.hpp>
#include <devshare/detail/runtime_record.hpp>
#include <devshare/result.hpp>

namespace devshare::detail {

// `entry` is a member of the table: call_on<&acl::Table::aclrtSynchronizeStream>(session, device, operation, stream).
template <auto entry, class... Arguments>
Result<void> call_on(const Session& session, std::int32_t device, Operation operation,
                     Arguments... arguments) noexcept {
  if (!session.alive()) return unusable(session, operation);
  const RuntimeRecord& record = *session.record;
  if (record.table.*entry == nullptr) return lacking(operation, entry_of<entry>);
  const CurrentDevice current(record, device);
  acl::aclError code = current.code();
  if (code == 0) code = (record.table.*entry)(arguments...);
  if (code == 0) return {};
  return refusal(record, operation, entry_of<entry>, code, {.device = device});
}

// What is left until then as ACL takes it: whole milliseconds, rounded up; -1 is without a limit.
inline std::int32_t timeout_until(Deadline deadline) noexcept {
  if (deadline.is_never()) return -1;
  constexpr std::int64_t nanoseconds = 1'000'000;
  const std::int64_t left = deadline.nanoseconds_left();
  const std::int64_t milliseconds = left / nanoseconds + (left % nanoseconds != 0 ? 1 : 0);
  return static_cast<std::int32_t>(milliseconds < INT32_MAX ? milliseconds : INT32_MAX);
}

}  // namespace devshare::detail
