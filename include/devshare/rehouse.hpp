// SPDX-License-Identifier: Apache-2.0
// rehouse: from memory that can be shared by key only to memory that can be shared by handle.
#pragma once

#include <devshare/mapping.hpp>
#include <devshare/memory.hpp>
#include <devshare/result.hpp>

namespace devshare {

// Allocates physical memory of the same size, maps it, copies the bytes inside the device and frees the old block. For
// a moment both are there, and the address is another one afterwards: never done unless asked for. A refusal gives the
// memory back, untouched.
// Errors: those of PhysicalHandle::allocate, Mapping::of and copy_on_device.
DEVSHARE_API Result<Mapping, Refused<DeviceMemory>> rehouse(DEVSHARE_CONSUMED_PARAMETER DeviceMemory&& memory,
                                                            Placement placement = {}) noexcept;
void rehouse(const DeviceMemory&, Placement = {}) = delete;  // write rehouse(std::move(memory)): the old block is freed

}  // namespace devshare
