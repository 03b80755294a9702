// SPDX-License-Identifier: Apache-2.0
// An error on its way to the other side, which needs to know what the runtime there said.
#pragma once

#include "message.hpp"

namespace devshare::detail {

RemoteError to_message(const Error& error) noexcept;

// The same at the other side: what `operation` failed of here, with a note that says who failed at what. A kind or a
// reason that is not known here becomes `refused` and none.
Error from_message(const RemoteError& error, Operation operation, std::int32_t pid) noexcept;

}  // namespace devshare::detail
