// SPDX-License-Identifier: Apache-2.0
// Host memory that was registered for the device, which has an address of its own for it: kernels use it, copies do
// not.
#pragma once

#include "host_hold.hpp"

#include <cstdint>

namespace devshare::host {

bool is_registered(const void* host_address);

// Holds all of the range, by one registration or several that adjoin. Empty when not all of it is registered.
HostHold hold_registered(const void* host_address, std::uint64_t size);

// aclFinalize, while no call is in flight.
void registrations_shut_down();

std::uint64_t registrations_held();

}  // namespace devshare::host
