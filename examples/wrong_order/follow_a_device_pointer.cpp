// SPDX-License-Identifier: Apache-2.0
// Follow a device address on the host.
// reason: device memory is not host memory: copy it, or launch a kernel on it
#include <devshare/devshare.hpp>

using namespace devshare;

std::byte first(const ImportedMapping& mapping) { return mapping.bytes()[0]; }
