// SPDX-License-Identifier: Apache-2.0
// What ends an object says so where it is called: by std::move.
// reason: write std::move(key).close(): it ends the export and gives the memory back
#include <devshare/exported.hpp>

using namespace devshare;

auto right(SharedMemoryKey<> key) { return std::move(key).close(); }

#ifdef DEVSHARE_BAD
void mistake_1(SharedMemoryKey<> key) { key.close(); }
#endif
#ifdef DEVSHARE_BAD
void mistake_2(SharedMemoryKey<>& key) { key.close(); }
#endif
#ifdef DEVSHARE_BAD
void mistake_3(Result<SharedMemoryKey<>>& result) { result->close(); }
#endif
