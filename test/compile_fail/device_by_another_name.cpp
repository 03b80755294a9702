// SPDX-License-Identifier: Apache-2.0
// Only a DeviceId names a device: a number or a process does not.
// reason: only a DeviceId names a device: write DeviceId{n}
#include <devshare/runtime.hpp>

using namespace devshare;

Result<Device> right(const Runtime& runtime) { return runtime.device(DeviceId{0}); }

#ifdef DEVSHARE_BAD
void mistake_1(const Runtime& runtime) { static_cast<void>(runtime.device(0)); }
#endif
#ifdef DEVSHARE_BAD
void mistake_2(const Runtime& runtime) { static_cast<void>(runtime.device(0u)); }
#endif
#ifdef DEVSHARE_BAD
void mistake_3(const Runtime& runtime, BarePid pid) { static_cast<void>(runtime.device(pid)); }
#endif
#ifdef DEVSHARE_BAD
void mistake_4(const Runtime& runtime, const Device& device) { static_cast<void>(runtime.device(device)); }
#endif
