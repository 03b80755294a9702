// SPDX-License-Identifier: Apache-2.0
// End a key in passing: what ends an object must be seen to, where it is called.
// reason: write std::move(key).close(): it ends the export and gives the memory back
#include <devshare/devshare.hpp>

using namespace devshare;

void finish(SharedMemoryKey<>& key) { key.close(); }
