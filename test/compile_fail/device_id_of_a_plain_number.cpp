// SPDX-License-Identifier: Apache-2.0
// A device id is no integer and does not become one by accident.
// expect(gcc): cannot convert|invalid conversion
// expect(clang): cannot initialize
#include <devshare/device.hpp>

using namespace devshare;

DeviceId right() { return DeviceId{1}; }

#ifdef DEVSHARE_BAD
DeviceId mistake_1() { return 1; }
#endif
#ifdef DEVSHARE_BAD
int mistake_2(DeviceId id) { return id; }
#endif
#ifdef DEVSHARE_BAD
std::int32_t mistake_3(const Device& device) { return device.id(); }
#endif
