// SPDX-License-Identifier: Apache-2.0
#include "streaming_copy.hpp"

#ifdef __x86_64__
#include <immintrin.h>
#endif

namespace devshare::bench {

#ifdef __x86_64__
namespace {

void stream_by_16(std::byte* to, const std::byte* from, std::size_t count) {
  for (std::size_t i = 0; i < count; i += 64) {
    const auto* const source = reinterpret_cast<const __m128i*>(from + i);
    auto* const target = reinterpret_cast<__m128i*>(to + i);
    _mm_stream_si128(target, _mm_loadu_si128(source));
    _mm_stream_si128(target + 1, _mm_loadu_si128(source + 1));
    _mm_stream_si128(target + 2, _mm_loadu_si128(source + 2));
    _mm_stream_si128(target + 3, _mm_loadu_si128(source + 3));
  }
}

[[gnu::target("avx2")]] void stream_by_32(std::byte* to, const std::byte* from, std::size_t count) {
  for (std::size_t i = 0; i < count; i += 128) {
    const auto* const source = reinterpret_cast<const __m256i*>(from + i);
    auto* const target = reinterpret_cast<__m256i*>(to + i);
    _mm256_stream_si256(target, _mm256_loadu_si256(source));
    _mm256_stream_si256(target + 1, _mm256_loadu_si256(source + 1));
    _mm256_stream_si256(target + 2, _mm256_loadu_si256(source + 2));
    _mm256_stream_si256(target + 3, _mm256_loadu_si256(source + 3));
  }
}

}  // namespace

bool stream_by_hand(std::byte* to, const std::byte* from, std::size_t count) {
  (__builtin_cpu_supports("avx2") != 0 ? stream_by_32 : stream_by_16)(to, from, count);
  _mm_sfence();
  return true;
}

bool move_string_by_hand(std::byte* to, const std::byte* from, std::size_t count) {
  asm volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(count) : : "memory");
  return true;
}

#else

bool stream_by_hand(std::byte*, const std::byte*, std::size_t) { return false; }
bool move_string_by_hand(std::byte*, const std::byte*, std::size_t) { return false; }

#endif

}  // namespace devshare::bench
