// SPDX-License-Identifier: Apache-2.0
// By hand: memory that another process may map without fear, and whole copies into and out of it.
#pragma once

#include <cstddef>

namespace devshare::bench {

// Of that size for ever: an importer that has checked this never meets a SIGBUS.
int make_sealed_memfd(std::size_t size);
bool is_sealed_memfd(int descriptor, std::size_t size);

void write_at(int descriptor, std::size_t offset, const void* bytes, std::size_t count);
void read_at(int descriptor, std::size_t offset, void* bytes, std::size_t count);

std::byte* map_whole(int descriptor, std::size_t size);
void unmap_whole(std::byte* bytes, std::size_t size);

}  // namespace devshare::bench
