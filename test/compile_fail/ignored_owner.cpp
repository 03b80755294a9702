// SPDX-License-Identifier: Apache-2.0
// An owner that nobody keeps ends at once.
// expect(all): (is freed|ends|is closed) when this object ends
#include <devshare/exported.hpp>
#include <devshare/imported.hpp>

using namespace devshare;

DeviceMemory right(Result<DeviceMemory> result) { return *std::move(result); }

#ifdef DEVSHARE_BAD
void mistake_1(Result<DeviceMemory> result) { *std::move(result); }
#endif
#ifdef DEVSHARE_BAD
void mistake_2(Result<SharedMemoryKey<>> result) { *std::move(result); }
#endif
#ifdef DEVSHARE_BAD
void mistake_3(Result<ImportedMapping> result) { std::move(result).value(); }
#endif
#ifdef DEVSHARE_BAD
void mistake_4(Result<PeerAccess> result) { std::move(result).value(); }
#endif
#ifdef DEVSHARE_BAD
void mistake_5(Refused<DeviceMemory> refused) { std::move(refused).take_back(); }
#endif
