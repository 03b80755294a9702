// SPDX-License-Identifier: Apache-2.0
// Only a DeviceId names a device: a number or a process does not.
// reason: only a DeviceId names a device: write DeviceId{n}
#include <devshare/runtime.hpp>

using namespace devshare;

Result<Device> right(const Runtime& runtime) { return runtime.device(DeviceId{0}); }

#if DEVSHARE_BAD == 1
void wrong(const Runtime& runtime) { static_cast<void>(runtime.device(0)); }
#endif
#if DEVSHARE_BAD == 2
void wrong(const Runtime& runtime) { static_cast<void>(runtime.device(0u)); }
#endif
#if DEVSHARE_BAD == 3
void wrong(const Runtime& runtime, BarePid pid) { static_cast<void>(runtime.device(pid)); }
#endif
#if DEVSHARE_BAD == 4
void wrong(const Runtime& runtime, const Device& device) { static_cast<void>(runtime.device(device)); }
#endif
