// SPDX-License-Identifier: Apache-2.0
// Every import this process has open, one record a key, counted: the runtime imports a key once, however many
// ImportedMappings there are of it (B035).
#pragma once

#include <cstdint>

namespace devshare::detail {

// Forgets the imports of a session that is over; their objects are inert.
void forget_imports() noexcept;

// How often a ticket was opened whose key was open already, since the process began.
std::uint64_t repeated_imports() noexcept;

}  // namespace devshare::detail
