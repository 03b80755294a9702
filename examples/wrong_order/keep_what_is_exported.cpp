// SPDX-License-Identifier: Apache-2.0
// Export memory and go on owning it: then it can be freed under its importers (R22).
// reason: write export_key(std::move(memory)): the key owns what it exports
#include <devshare/devshare.hpp>

using namespace devshare;

auto share(DeviceMemory& memory) { return export_key(memory); }
