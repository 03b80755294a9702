// SPDX-License-Identifier: Apache-2.0
// What lib/core takes from the host runtime: its table, its session word, its reasons, its name and version.
#pragma once

#include "failure.hpp"
#include "lifecycle.hpp"

#include <devshare/acl/table.hpp>

namespace devshare::host {

// The host runtime's entries, complete. Filled once, immortal.
const acl::Table& table() noexcept;

// The library says that its Runtime is this one: devshare/host.hpp's active() is true from then on.
void note_chosen() noexcept;

}  // namespace devshare::host
