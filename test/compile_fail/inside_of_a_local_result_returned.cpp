// SPDX-License-Identifier: Apache-2.0
// What a Result lends does not outlive it: neither its value nor its error.
// only: clang
// expect(clang): stack memory associated with .* returned \[-Werror,-Wreturn-stack-address\]
#include <devshare/memory.hpp>

using namespace devshare;

Error right(Result<DeviceMemory> result) { return result.error(); }
DeviceMemory right_too(Result<DeviceMemory> result) { return *std::move(result); }

#ifdef DEVSHARE_BAD
const DeviceMemory& mistake_1(Result<DeviceMemory> result) { return *result; }
#endif
#ifdef DEVSHARE_BAD
const DeviceMemory& mistake_2(Result<DeviceMemory> result) { return result.value(); }
#endif
#ifdef DEVSHARE_BAD
const Error& mistake_3(Result<DeviceMemory> result) { return result.error(); }
#endif
#ifdef DEVSHARE_BAD
const Error& mistake_4(Result<void> result) { return result.error(); }
#endif
#ifdef DEVSHARE_BAD
const Error& mistake_5(Refused<DeviceMemory> refused) { return refused.error(); }
#endif
#ifdef DEVSHARE_BAD
const Error& mistake_6(Result<int, Refused<DeviceMemory>> result) { return result.error().error(); }
#endif
