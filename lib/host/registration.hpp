// SPDX-License-Identifier: Apache-2.0
// Host memory that was registered for the device, which has an address of its own for it: kernels use it, copies do
// not.
#pragma once

#include <cstdint>

namespace devshare::host {

bool is_registered(const void* host_address);  // inside a registered range

// aclFinalize, while no call is in flight.
void registrations_shut_down();

std::uint64_t registrations_held();

}  // namespace devshare::host
