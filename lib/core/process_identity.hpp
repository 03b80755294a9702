// SPDX-License-Identifier: Apache-2.0
// Who a process is, in a form that is never reused.
#pragma once

#include <devshare/result.hpp>
#include <devshare/ticket.hpp>

namespace devshare::detail {

// This process. Read once and again after fork. Error: fd_limit, when no descriptor was left to read all of it: by half
// of its name others would take it for another process.
Result<ExporterIdentity> own_identity(Operation operation) noexcept;

enum class Alive : std::uint8_t { yes, no, unknown };

// Whether the process still runs: `unknown` where its pid means nothing here (another pid namespace or machine).
Alive process_alive(const ExporterIdentity& identity) noexcept;

// 16 bytes that no other export of any process has.
std::array<std::byte, 16> new_nonce() noexcept;

}  // namespace devshare::detail
