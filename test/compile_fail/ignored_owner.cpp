// SPDX-License-Identifier: Apache-2.0
// An owner that nobody keeps ends at once.
// expect(all): (is freed|ends|is closed) when this object ends
#include <devshare/exported.hpp>
#include <devshare/imported.hpp>

using namespace devshare;

DeviceMemory right(Result<DeviceMemory> result) { return *std::move(result); }

#if DEVSHARE_BAD == 1
void wrong(Result<DeviceMemory> result) { *std::move(result); }
#endif
#if DEVSHARE_BAD == 2
void wrong(Result<SharedMemoryKey<>> result) { *std::move(result); }
#endif
#if DEVSHARE_BAD == 3
void wrong(Result<ImportedMapping> result) { std::move(result).value(); }
#endif
#if DEVSHARE_BAD == 4
void wrong(Result<PeerAccess> result) { std::move(result).value(); }
#endif
#if DEVSHARE_BAD == 5
void wrong(Refused<DeviceMemory> refused) { std::move(refused).take_back(); }
#endif
