// SPDX-License-Identifier: Apache-2.0
// Take a number for a device.
// reason: only a DeviceId names a device: write DeviceId{n}
#include <devshare/devshare.hpp>

using namespace devshare;

Result<Device> open(const Runtime& runtime) { return runtime.device(0); }
