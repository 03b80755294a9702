// SPDX-License-Identifier: Apache-2.0
#include "bulk_copy.hpp"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>

// Not optimised, each of the intrinsics is a call, and the C library faster than all of them.
#if defined(__x86_64__) && defined(__OPTIMIZE__)
#define DEVSHARE_STREAMING_STORES 1
#include <immintrin.h>
#endif

// There with AddressSanitizer, ThreadSanitizer and their like. Asked when the program runs: it may have a sanitizer
// that the library was built without.
extern "C" [[gnu::weak]] void __sanitizer_print_stack_trace();

namespace devshare::host {
namespace {

// A core has no more than so much of a cache that all share: from here on a streamed copy is the faster one even if its
// destination is read straight afterwards (at 8 MiB it was as fast, at 4 MiB slower).
constexpr std::size_t most_in_cache = std::size_t{16} << 20;
constexpr std::size_t least_in_cache = std::size_t{1} << 20;

std::size_t find_streams_from() noexcept {
  long cache = -1;
#ifdef _SC_LEVEL3_CACHE_SIZE
  cache = ::sysconf(_SC_LEVEL3_CACHE_SIZE);
#endif
  if (cache <= 0) return most_in_cache;
  const std::size_t half = static_cast<std::size_t>(cache) / 2;  // the other half is the source's
  return std::clamp(half, least_in_cache, most_in_cache);
}

bool overlap(const void* a, const void* b, std::size_t count) noexcept {
  const std::uintptr_t apart = reinterpret_cast<std::uintptr_t>(a) - reinterpret_cast<std::uintptr_t>(b);
  return apart < count || std::uintptr_t{0} - apart < count;
}

#ifdef DEVSHARE_STREAMING_STORES

constexpr std::size_t line = 64;  // bytes that go out in one piece, if all are stored
constexpr std::size_t step = 2 * line;

// Four streams through memory, a page apart, go up to 1.4 times as fast as one: each page is fetched ahead by itself.
constexpr std::size_t stride = std::size_t{4} << 10;
constexpr std::size_t stretch = 4 * stride;

std::size_t bytes_to_line(const void* address) noexcept {
  return (std::uintptr_t{0} - reinterpret_cast<std::uintptr_t>(address)) % line;
}

// Both copy as many whole stretches as there are, to the start of a line, and return the bytes they copied.

std::size_t copy_by_16(std::byte* to, const std::byte* from, std::size_t count) noexcept {
  std::size_t done = 0;
  for (; count - done >= stretch; done += stretch) {
    for (std::size_t at = done; at < done + stride; at += step) {
      for (std::size_t i = at; i < at + stretch; i += stride) {
        const auto* const source = reinterpret_cast<const __m128i*>(from + i);
        auto* const target = reinterpret_cast<__m128i*>(to + i);
        for (int half = 0; half < 8; half += 4) {
          const __m128i a = _mm_loadu_si128(source + half);
          const __m128i b = _mm_loadu_si128(source + half + 1);
          const __m128i c = _mm_loadu_si128(source + half + 2);
          const __m128i d = _mm_loadu_si128(source + half + 3);
          _mm_stream_si128(target + half, a);
          _mm_stream_si128(target + half + 1, b);
          _mm_stream_si128(target + half + 2, c);
          _mm_stream_si128(target + half + 3, d);
        }
      }
    }
  }
  return done;
}

[[gnu::target("avx2")]] std::size_t copy_by_32(std::byte* to, const std::byte* from, std::size_t count) noexcept {
  std::size_t done = 0;
  for (; count - done >= stretch; done += stretch) {
    for (std::size_t at = done; at < done + stride; at += step) {
      for (std::size_t i = at; i < at + stretch; i += stride) {
        const auto* const source = reinterpret_cast<const __m256i*>(from + i);
        auto* const target = reinterpret_cast<__m256i*>(to + i);
        const __m256i a = _mm256_loadu_si256(source);
        const __m256i b = _mm256_loadu_si256(source + 1);
        const __m256i c = _mm256_loadu_si256(source + 2);
        const __m256i d = _mm256_loadu_si256(source + 3);
        _mm256_stream_si256(target, a);
        _mm256_stream_si256(target + 1, b);
        _mm256_stream_si256(target + 2, c);
        _mm256_stream_si256(target + 3, d);
      }
    }
  }
  return done;
}

// Nothing is fetched: one stream is enough, and stores of 16 bytes are.
std::size_t fill_by_16(std::byte* to, unsigned char value, std::size_t count) noexcept {
  const __m128i bytes = _mm_set1_epi8(static_cast<char>(value));
  std::size_t done = 0;
  for (; count - done >= line; done += line) {
    auto* const target = reinterpret_cast<__m128i*>(to + done);
    _mm_stream_si128(target, bytes);
    _mm_stream_si128(target + 1, bytes);
    _mm_stream_si128(target + 2, bytes);
    _mm_stream_si128(target + 3, bytes);
  }
  return done;
}

void stream(bulk::Way way, std::byte* to, const std::byte* from, std::size_t count) noexcept {
  const std::size_t head = std::min(bytes_to_line(to), count);
  std::memcpy(to, from, head);
  const std::size_t left = count - head;
  const std::size_t done = head + (way == bulk::Way::stream_32 ? copy_by_32 : copy_by_16)(to + head, from + head, left);
  std::memcpy(to + done, from + done, count - done);
  _mm_sfence();  // whoever is told that the copy is done must find it so
}

void stream_fill(std::byte* to, unsigned char value, std::size_t count) noexcept {
  const std::size_t head = std::min(bytes_to_line(to), count);
  std::memset(to, value, head);
  const std::size_t done = head + fill_by_16(to + head, value, count - head);
  std::memset(to + done, value, count - done);
  _mm_sfence();
}

#endif

}  // namespace

bool bulk::possible(Way way) noexcept {
  if (way == Way::plain) return true;
#ifdef DEVSHARE_STREAMING_STORES
  return way == Way::stream_16 || __builtin_cpu_supports("avx2") != 0;
#else
  return false;
#endif
}

bulk::Way bulk::chosen_way() noexcept {
  if (__sanitizer_print_stack_trace != nullptr) return Way::plain;
  for (const Way way : {Way::stream_32, Way::stream_16}) {
    if (possible(way)) return way;
  }
  return Way::plain;
}

std::size_t bulk::streams_from() noexcept {
  static constinit std::atomic<std::size_t> found{0};  // no lock, which a fork might find held; all find the same
  std::size_t bytes = found.load(std::memory_order_relaxed);
  if (bytes == 0) {
    bytes = find_streams_from();
    found.store(bytes, std::memory_order_relaxed);
  }
  return bytes;
}

void bulk::copy(Way way, void* to, const void* from, std::size_t count) noexcept {
#ifdef DEVSHARE_STREAMING_STORES
  if (way != Way::plain) return stream(way, static_cast<std::byte*>(to), static_cast<const std::byte*>(from), count);
#endif
  static_cast<void>(way);
  std::memcpy(to, from, count);
}

void bulk::fill(Way way, void* to, unsigned char value, std::size_t count) noexcept {
#ifdef DEVSHARE_STREAMING_STORES
  if (way != Way::plain) return stream_fill(static_cast<std::byte*>(to), value, count);
#endif
  static_cast<void>(way);
  std::memset(to, value, count);
}

void copy_bulk(void* to, const void* from, std::size_t count) noexcept {
  if (count < bulk::streams_from() || overlap(to, from, count)) {
    std::memmove(to, from, count);
  } else {
    bulk::copy(bulk::chosen_way(), to, from, count);
  }
}

void fill_bulk(void* to, unsigned char value, std::size_t count) noexcept {
  bulk::fill(count < bulk::streams_from() ? bulk::Way::plain : bulk::chosen_way(), to, value, count);
}

}  // namespace devshare::host
