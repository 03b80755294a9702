// SPDX-License-Identifier: Apache-2.0
// What ends an object says so where it is called: by std::move.
// reason: write std::move(key).close(): it ends the export and gives the memory back
#include <devshare/exported.hpp>

using namespace devshare;

auto right(SharedMemoryKey<> key) { return std::move(key).close(); }

#if DEVSHARE_BAD == 1
void wrong(SharedMemoryKey<> key) { key.close(); }
#endif
#if DEVSHARE_BAD == 2
void wrong(SharedMemoryKey<>& key) { key.close(); }
#endif
#if DEVSHARE_BAD == 3
void wrong(Result<SharedMemoryKey<>>& result) { result->close(); }
#endif
