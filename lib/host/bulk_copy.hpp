// SPDX-License-Identifier: Apache-2.0
// memmove and memset for bytes that may be many, or few and copied all the time.
//
// Many bytes are better stored past the caches: an ordinary store reads its line from memory first, and by the end a
// cache that is smaller than the copy has lost what it held. Few are left to the C library: they are still in the cache
// when somebody reads them. What is fastest for many depends on the processor, as measured (docs/performance.md):
//
//   Intel      streaming stores, copies by four streams at once: up to 1.5 of memcpy, where `rep movsb` is 0.6 to 1
//   AMD Zen 5  `rep movsb` for copies, 1.2 to 1.4, where four streams are 0.9; no fill is faster than the C library's
//   all others the C library's: not measured
//
// From 2 to 16 KiB the C library takes `rep movsb` too where the processor claims to be fast at it. On AMD Zen 5 plain
// loads and stores of 64 bytes take 0.6 of its time as long as both ends are in the first cache, and 0.8 to 1.3 in the
// second and beyond.
//
// Under a sanitizer all is left to the C library. What it calls there looks at the whole range of both ends; the other
// ways are nobody's to see, and races and overflows with them.
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

// By the C library, by streaming stores of so many bytes, by `rep movsb`, or by plain stores of 64 bytes.
enum class Way : std::uint8_t { plain, stream_16, stream_32, string, wide };

// Whether the processor has what it takes, and the compiler gave it.
bool possible(Way way) noexcept;

// How copy_bulk and fill_bulk go about it. The same whenever it is asked for.
struct alignas(8) Plan {  // read and written in one piece
  std::uint32_t many = 0;
  Way copy_few = Way::plain;
  Way copy_more = Way::plain;  // than a few
  Way copy = Way::plain;       // many
  Way fill = Way::plain;
};
Plan plan() noexcept;

inline constexpr std::size_t least_of_few = std::size_t{2} << 10;
inline constexpr std::size_t most_of_few = std::size_t{16} << 10;

// Any number of bytes in a way that is possible; the ranges do not overlap. No fill is by `rep stosb`, which the C
// library takes itself where it is fast.
void copy(Way way, void* to, const void* from, std::size_t count) noexcept;
void fill(Way way, void* to, unsigned char value, std::size_t count) noexcept;

}  // namespace bulk
}  // namespace devshare::host
