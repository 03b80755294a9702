// SPDX-License-Identifier: Apache-2.0
// A key owns what it exports, so it must be given it.
// reason: (std::move(memory)): the key owns
#include <devshare/exported.hpp>

using namespace devshare;

auto right(DeviceMemory memory) { return export_key(std::move(memory)); }

#if DEVSHARE_BAD == 1
void wrong(DeviceMemory& memory) { export_key(memory); }
#endif
#if DEVSHARE_BAD == 2
void wrong(const DeviceMemory& memory) { export_key(memory); }
#endif
#if DEVSHARE_BAD == 3
void wrong(DeviceMemory& memory) { export_key_unrestricted(memory); }
#endif
#if DEVSHARE_BAD == 4
void wrong(UnownedMemory memory) { export_key(memory); }
#endif
