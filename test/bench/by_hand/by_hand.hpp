// SPDX-License-Identifier: Apache-2.0
// What devshare is measured against: programs that do the same job with nothing in between.
#pragma once

#include "../way.hpp"

namespace devshare::bench {

// A sealed memfd handed over on a kept connection to the process that was admitted, as checked_share.cpp says.
std::unique_ptr<Way> by_hand(Touch touch);

// Boost.Interprocess, shared_memory_object and mapped_region: a name that whoever knows it may open.
std::unique_ptr<Way> by_boost();

}  // namespace devshare::bench
