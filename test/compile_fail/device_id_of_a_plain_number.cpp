// SPDX-License-Identifier: Apache-2.0
// A device id is no integer and does not become one by accident.
// expect(gcc): cannot convert|invalid conversion
// expect(clang): cannot initialize
#include <devshare/device.hpp>

using namespace devshare;

DeviceId right() { return DeviceId{1}; }

#if DEVSHARE_BAD == 1
DeviceId wrong() { return 1; }
#endif
#if DEVSHARE_BAD == 2
int wrong(DeviceId id) { return id; }
#endif
#if DEVSHARE_BAD == 3
std::int32_t wrong(const Device& device) { return device.id(); }
#endif
