// SPDX-License-Identifier: Apache-2.0
// The testing instrument as the entry layer sees it: faults and delays before a call, a journal line after it.
// One load says that nothing is armed; only then is a call as fast as its body.
#pragma once

#include <devshare/acl/table.hpp>

#include <cstdint>
#include <string_view>

namespace devshare::host {

// True when the entry layer must call the two functions below.
bool instrument_armed() noexcept;

// Sleeps the delay asked for; returns the code to be returned instead of making the call, or 0.
acl::aclError instrument_before(acl::Entry entry);

// Writes the journal line. `arguments` is a JSON object, e.g. {"size":4096}.
void instrument_after(acl::Entry entry, acl::aclError result, std::string_view arguments, std::uint64_t started_ns);

}  // namespace devshare::host
