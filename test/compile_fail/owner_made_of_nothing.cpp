// SPDX-License-Identifier: Apache-2.0
// An object that exists is valid: there is none without what it stands for.
// expect(gcc): no matching function|private within this context
// expect(clang): no matching constructor|private constructor|no default constructor|must explicitly initialize
#include <devshare/exported.hpp>
#include <devshare/imported.hpp>
#include <devshare/runtime.hpp>

using namespace devshare;

Result<DeviceMemory> right(const Device& device) { return DeviceMemory::allocate(device, 64); }

#if DEVSHARE_BAD == 1
DeviceMemory wrong;
#endif
#if DEVSHARE_BAD == 2
SharedMemoryKey<> wrong;
#endif
#if DEVSHARE_BAD == 3
ImportedMapping wrong;
#endif
#if DEVSHARE_BAD == 4
ReceivedTicket wrong;
#endif
#if DEVSHARE_BAD == 5
KeyTicket wrong;
#endif
#if DEVSHARE_BAD == 6
Device wrong;
#endif
#if DEVSHARE_BAD == 7
Runtime wrong;
#endif
#if DEVSHARE_BAD == 8
BarePid wrong;
#endif
#if DEVSHARE_BAD == 9
UnownedMemory wrong;
#endif
