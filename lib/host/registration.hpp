// SPDX-License-Identifier: Apache-2.0
// Host memory that was registered for the device, which has an address of its own for it: kernels use it, copies do
// not.
#pragma once

#include <cstdint>

namespace devshare::host {

// Whether all of it is registered, by one registration or several that adjoin.
bool is_registered(const void* host_address, std::uint64_t size = 1);

// aclFinalize, while no call is in flight.
void registrations_shut_down();

std::uint64_t registrations_held();

}  // namespace devshare::host
