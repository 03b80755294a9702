// SPDX-License-Identifier: Apache-2.0
// An object that exists is valid: there is none without what it stands for.
// expect(gcc): no matching function|private within this context
// expect(clang): no matching constructor|private constructor|no default constructor
#include <devshare/exported.hpp>
#include <devshare/imported.hpp>
#include <devshare/runtime.hpp>

using namespace devshare;

Result<DeviceMemory> right(const Device& device) { return DeviceMemory::allocate(device, 64); }

#ifdef DEVSHARE_BAD
DeviceMemory mistake_1;
#endif
#ifdef DEVSHARE_BAD
SharedMemoryKey<> mistake_2;
#endif
#ifdef DEVSHARE_BAD
ImportedMapping mistake_3;
#endif
#ifdef DEVSHARE_BAD
ReceivedTicket mistake_4;
#endif
#ifdef DEVSHARE_BAD
KeyTicket mistake_5;
#endif
#ifdef DEVSHARE_BAD
Device mistake_6;
#endif
#ifdef DEVSHARE_BAD
Runtime mistake_7;
#endif
#ifdef DEVSHARE_BAD
BarePid mistake_8;
#endif
#ifdef DEVSHARE_BAD
UnownedMemory mistake_9;
#endif
