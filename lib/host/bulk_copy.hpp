// SPDX-License-Identifier: Apache-2.0
// memmove and memset for bytes that may be many.
//
// Many bytes are stored past the caches (streaming stores): an ordinary store reads its line from memory first, and by
// the end a cache that is smaller than the copy has lost what it held. Few are left to the C library: they are still in
// the cache when somebody reads them. `rep movsb` is no way of its own: the C library takes it where the processor says
// that it is fast, and for 1 GiB it took 1.6 to 2 times as long as these stores.
//
// Under a sanitizer all is left to the C library. What it calls there looks at the whole range of both ends; streaming
// stores are nobody's to see, and races and overflows with them.
#pragma once

#include <cstddef>
#include <cstdint>

namespace devshare::host {

// As memmove: the ranges may overlap.
void copy_bulk(void* to, const void* from, std::size_t count) noexcept;

// As memset.
void fill_bulk(void* to, unsigned char value, std::size_t count) noexcept;

// What the two are made of, for tests.
namespace bulk {

// By the C library, or by streaming stores of so many bytes.
enum class Way : std::uint8_t { plain, stream_16, stream_32 };

// Whether the processor has what it takes, and the compiler gave it.
bool possible(Way way) noexcept;

// What copy_bulk and fill_bulk use from `streams_from` bytes on.
Way chosen_way() noexcept;
std::size_t streams_from() noexcept;

// Any number of bytes in a way that is possible; the ranges do not overlap.
void copy(Way way, void* to, const void* from, std::size_t count) noexcept;
void fill(Way way, void* to, unsigned char value, std::size_t count) noexcept;

}  // namespace bulk
}  // namespace devshare::host
