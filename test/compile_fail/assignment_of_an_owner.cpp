// SPDX-License-Identifier: Apache-2.0
// Whoever owns something of the runtime closes it, so there is one.
// reason: one owner: std::move it
#include <devshare/exported.hpp>
#include <devshare/imported.hpp>

using namespace devshare;

void right(DeviceMemory& to, DeviceMemory& from) { to = std::move(from); }

#ifdef DEVSHARE_BAD
void mistake_1(DeviceMemory& to, const DeviceMemory& from) { to = from; }
#endif
#ifdef DEVSHARE_BAD
void mistake_2(SharedMemoryKey<>& to, const SharedMemoryKey<>& from) { to = from; }
#endif
#ifdef DEVSHARE_BAD
void mistake_3(ImportedMapping& to, const ImportedMapping& from) { to = from; }
#endif
