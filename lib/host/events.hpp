// SPDX-License-Identifier: Apache-2.0
// Events, as the rest of the runtime meets them.
#pragma once

#include <cstdint>

namespace devshare::host {

void events_shut_down();  // aclFinalize, after the streams
std::uint64_t events_held();

}  // namespace devshare::host
