// SPDX-License-Identifier: Apache-2.0
#include "bulk_copy.hpp"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>

#ifdef __x86_64__
#include <cpuid.h>
#endif

// Not optimised, each of the intrinsics is a call, and the C library faster than all of them.
#if defined(__x86_64__) && defined(__OPTIMIZE__)
#define DEVSHARE_HOST_INTRINSICS 1
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

std::size_t find_many() noexcept {
  long cache = -1;
#ifdef _SC_LEVEL3_CACHE_SIZE
  cache = ::sysconf(_SC_LEVEL3_CACHE_SIZE);
#endif
  if (cache <= 0) return most_in_cache;
  const std::size_t half = static_cast<std::size_t>(cache) / 2;  // the other half is the source's
  return std::clamp(half, least_in_cache, most_in_cache);
}

#ifdef __x86_64__

struct Processor {
  bool intel = false;
  bool zen_5 = false;  // of AMD, or later
};
Processor find_processor() noexcept {
  unsigned a = 0;
  unsigned maker = 0;
  unsigned c = 0;
  unsigned d = 0;
  if (__get_cpuid(0, &a, &maker, &c, &d) == 0) return {};
  unsigned version = 0;
  unsigned b = 0;
  if (__get_cpuid(1, &version, &b, &c, &d) == 0) return {};
  const unsigned family = (version >> 8 & 0xf) + (version >> 20 & 0xff);
  return {.intel = maker == signature_INTEL_ebx, .zen_5 = maker == signature_AMD_ebx && family >= 0x1a};
}

void copy_string(void* to, const void* from, std::size_t count) noexcept {
  asm volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(count) : : "memory");
}

#endif

bulk::Plan find_plan() noexcept {
  bulk::Plan plan;
  plan.many = static_cast<std::uint32_t>(find_many());
  if (__sanitizer_print_stack_trace != nullptr) return plan;
#ifdef __x86_64__
  const Processor processor = find_processor();
  // From a few on the C library takes `rep movsb` too, after a look at this and that.
  if (processor.zen_5) plan.copy = plan.copy_more = bulk::Way::string;
  if (processor.zen_5 && bulk::possible(bulk::Way::wide)) plan.copy_few = bulk::Way::wide;
  if (!processor.intel) return plan;
  for (const bulk::Way way : {bulk::Way::stream_16, bulk::Way::stream_32}) {
    if (bulk::possible(way)) plan.copy = plan.fill = way;
  }
#endif
  return plan;
}

bool overlap(const void* a, const void* b, std::size_t count) noexcept {
  const std::uintptr_t apart = reinterpret_cast<std::uintptr_t>(a) - reinterpret_cast<std::uintptr_t>(b);
  return apart < count || std::uintptr_t{0} - apart < count;
}

#ifdef DEVSHARE_HOST_INTRINSICS

constexpr std::size_t line = 64;  // bytes that go out in one piece, if all are stored
constexpr std::size_t step = 2 * line;

// Four streams through memory, a page apart, go up to 1.4 times as fast as one where each page is fetched ahead by
// itself.
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

// The stores begin with a line of the destination. What is before the first and behind the last is covered by a store
// that overlaps with them.
[[gnu::target("avx512f")]] void copy_wide(std::byte* to, const std::byte* from, std::size_t count) noexcept {
  if (count < line) {
    std::memcpy(to, from, count);
    return;
  }
  _mm512_storeu_si512(to, _mm512_loadu_si512(from));
  std::size_t at = line - reinterpret_cast<std::uintptr_t>(to) % line;
  for (; count - at >= 4 * line; at += 4 * line) {
    const __m512i a = _mm512_loadu_si512(from + at);
    const __m512i b = _mm512_loadu_si512(from + at + line);
    const __m512i c = _mm512_loadu_si512(from + at + 2 * line);
    const __m512i d = _mm512_loadu_si512(from + at + 3 * line);
    _mm512_store_si512(to + at, a);
    _mm512_store_si512(to + at + line, b);
    _mm512_store_si512(to + at + 2 * line, c);
    _mm512_store_si512(to + at + 3 * line, d);
  }
  for (; count - at >= line; at += line) _mm512_store_si512(to + at, _mm512_loadu_si512(from + at));
  _mm512_storeu_si512(to + count - line, _mm512_loadu_si512(from + count - line));
  _mm256_zeroupper();
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
  switch (way) {
    case Way::plain:
      return true;
    case Way::string:
#ifdef __x86_64__
      return true;
#else
      return false;
#endif
    case Way::stream_16:
    case Way::stream_32:
    case Way::wide:
#ifdef DEVSHARE_HOST_INTRINSICS
      if (way == Way::stream_32) return __builtin_cpu_supports("avx2") != 0;
      return way == Way::stream_16 || __builtin_cpu_supports("avx512f") != 0;
#else
      return false;
#endif
  }
  return false;
}

bulk::Plan bulk::plan() noexcept {
  // No lock, which a fork might find held; all find the same. To ask the processor takes microseconds in a virtual
  // machine.
  static constinit std::atomic<Plan> found{Plan{}};
  static_assert(std::atomic<Plan>::is_always_lock_free);
  Plan plan = found.load(std::memory_order_relaxed);
  if (plan.many == 0) {
    plan = find_plan();
    found.store(plan, std::memory_order_relaxed);
  }
  return plan;
}

void bulk::copy(Way way, void* to, const void* from, std::size_t count) noexcept {
#ifdef __x86_64__
  if (way == Way::string) return copy_string(to, from, count);
#endif
#ifdef DEVSHARE_HOST_INTRINSICS
  if (way == Way::wide) return copy_wide(static_cast<std::byte*>(to), static_cast<const std::byte*>(from), count);
  if (way != Way::plain) return stream(way, static_cast<std::byte*>(to), static_cast<const std::byte*>(from), count);
#endif
  static_cast<void>(way);
  std::memcpy(to, from, count);
}

void bulk::fill(Way way, void* to, unsigned char value, std::size_t count) noexcept {
#ifdef DEVSHARE_HOST_INTRINSICS
  if (way == Way::stream_16 || way == Way::stream_32) return stream_fill(static_cast<std::byte*>(to), value, count);
#endif
  static_cast<void>(way);
  std::memset(to, value, count);
}

void copy_bulk(void* to, const void* from, std::size_t count) noexcept {
  const bulk::Plan plan = bulk::plan();
  bulk::Way way = bulk::Way::plain;
  if (count >= plan.many) {
    way = plan.copy;
  } else if (count >= bulk::least_of_few) {
    way = count <= bulk::most_of_few ? plan.copy_few : plan.copy_more;
  }
  if (way == bulk::Way::plain || overlap(to, from, count)) {
    std::memmove(to, from, count);
  } else {
    bulk::copy(way, to, from, count);
  }
}

void fill_bulk(void* to, unsigned char value, std::size_t count) noexcept {
  const bulk::Plan plan = bulk::plan();
  bulk::fill(count < plan.many ? bulk::Way::plain : plan.fill, to, value, count);
}

}  // namespace devshare::host
