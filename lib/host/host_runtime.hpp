// SPDX-License-Identifier: Apache-2.0
// What lib/core takes from the host runtime: its table, its session word, its reasons, its quick copies, its name and version.
#pragma once

#include "copy_at_hand.hpp"
#include "failure.hpp"
#include "lifecycle.hpp"

#include <devshare/acl/table.hpp>

namespace devshare::host {

// The host runtime's entries, complete. Filled once, immortal. One that came after the release that is played
// (DEVSHARE_HOST_INTERFACE) refuses with 207000.
const acl::Table& table() noexcept;

// The same as that release has it: without what is newer.
acl::Table table_of_session() noexcept;

// The library says that its Runtime is this one: devshare/host.hpp's active() is true from then on.
void note_chosen() noexcept;

}  // namespace devshare::host
