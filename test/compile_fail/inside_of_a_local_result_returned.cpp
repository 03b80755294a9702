// SPDX-License-Identifier: Apache-2.0
// What a Result lends does not outlive it: neither its value nor its error.
// only: clang
// expect(clang): (address of|reference to) stack memory associated with (local variable|parameter) '.*' returned \[-Werror,-Wreturn-stack-address\]
#include <devshare/memory.hpp>

using namespace devshare;

Error right(Result<DeviceMemory> result) { return result.error(); }
DeviceMemory right_too(Result<DeviceMemory> result) { return *std::move(result); }

#if DEVSHARE_BAD == 1
const DeviceMemory& wrong(Result<DeviceMemory> result) { return *result; }
#endif
#if DEVSHARE_BAD == 2
const DeviceMemory& wrong(Result<DeviceMemory> result) { return result.value(); }
#endif
#if DEVSHARE_BAD == 3
const Error& wrong(Result<DeviceMemory> result) { return result.error(); }
#endif
#if DEVSHARE_BAD == 4
const Error& wrong(Result<void> result) { return result.error(); }
#endif
#if DEVSHARE_BAD == 5
const Error& wrong(Refused<DeviceMemory> refused) { return refused.error(); }
#endif
#if DEVSHARE_BAD == 6
const Error& wrong(Result<int, Refused<DeviceMemory>> result) { return result.error().error(); }
#endif
