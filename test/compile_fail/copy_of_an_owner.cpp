// SPDX-License-Identifier: Apache-2.0
// Whoever owns something of the runtime closes it, so there is one.
// reason: one owner: std::move it
#include <devshare/exported.hpp>
#include <devshare/imported.hpp>

using namespace devshare;

DeviceMemory right(DeviceMemory memory) { return memory; }

#ifdef DEVSHARE_BAD
DeviceMemory mistake_1(DeviceMemory& memory) { return memory; }
#endif
#ifdef DEVSHARE_BAD
void mistake_2(const SharedMemoryKey<>& key) { SharedMemoryKey<> other = key; }
#endif
#ifdef DEVSHARE_BAD
void mistake_3(const ImportedMapping& mapping) { ImportedMapping other(mapping); }
#endif
