// SPDX-License-Identifier: Apache-2.0
// A key owns what it exports, so it must be given it.
// reason: (std::move(memory)): the key owns
#include <devshare/exported.hpp>

using namespace devshare;

auto right(DeviceMemory memory) { return export_key(std::move(memory)); }

#ifdef DEVSHARE_BAD
void mistake_1(DeviceMemory& memory) { export_key(memory); }
#endif
#ifdef DEVSHARE_BAD
void mistake_2(const DeviceMemory& memory) { export_key(memory); }
#endif
#ifdef DEVSHARE_BAD
void mistake_3(DeviceMemory& memory) { export_key_unrestricted(memory); }
#endif
#ifdef DEVSHARE_BAD
void mistake_4(UnownedMemory memory) { export_key(memory); }
#endif
