// SPDX-License-Identifier: Apache-2.0
// Numbers as little-endian bytes, whatever the machine, and a checksum of them: what every wire form is made of.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace devshare::detail {

// Writes into a buffer that is known to be large enough.
class Writer {
 public:
  explicit Writer(std::byte* at) noexcept : at_(at) {}

  template <class T>
  void number(T value) noexcept {
    if constexpr (std::endian::native == std::endian::little) {
      std::memcpy(at_, &value, sizeof(T));
      at_ += sizeof(T);
    } else {
      auto bits = static_cast<std::uint64_t>(value);
      for (std::size_t i = 0; i < sizeof(T); ++i, bits >>= 8) *at_++ = static_cast<std::byte>(bits & 0xff);
    }
  }
  void bytes(std::span<const std::byte> bytes) noexcept { at_ = std::copy(bytes.begin(), bytes.end(), at_); }
  void zeros(std::size_t count) noexcept { at_ = std::fill_n(at_, count, std::byte{0}); }
  std::byte* at() const noexcept { return at_; }

 private:
  std::byte* at_;
};

// Reads from a buffer that is known to have as much.
class Reader {
 public:
  explicit Reader(std::span<const std::byte> bytes) noexcept : at_(bytes.data()), end_(at_ + bytes.size()) {}

  template <class T>
  T number() noexcept {
    if constexpr (std::endian::native == std::endian::little) {
      T value;
      std::memcpy(&value, at_, sizeof(T));
      at_ += sizeof(T);
      return value;
    }
    std::uint64_t bits = 0;
    for (std::size_t i = 0; i < sizeof(T); ++i) bits |= std::to_integer<std::uint64_t>(*at_++) << (8 * i);
    return static_cast<T>(bits);
  }
  void bytes(std::span<std::byte> bytes) noexcept {
    std::copy_n(at_, bytes.size(), bytes.begin());
    at_ += bytes.size();
  }
  std::size_t left() const noexcept { return static_cast<std::size_t>(end_ - at_); }
  bool zeros(std::size_t count) noexcept {
    const bool all = std::all_of(at_, at_ + count, [](std::byte b) { return b == std::byte{0}; });
    at_ += count;
    return all;
  }

 private:
  const std::byte* at_;
  const std::byte* end_;
};

// Of whole words. Each step is a bijection of the state, so no change inside one word goes unseen, and the shift lets
// the upper bits reach the lower ones, so that two changes do not cancel. Against damage, not against malice.
inline std::uint64_t checksum_of_words(std::span<const std::byte> bytes) noexcept {
  std::uint64_t sum = 0xcbf29ce484222325;
  for (Reader in(bytes); in.left() >= sizeof(std::uint64_t);) {
    sum = (sum ^ in.number<std::uint64_t>()) * 0x9e3779b97f4a7c15;
    sum ^= sum >> 32;
  }
  return sum;
}

}  // namespace devshare::detail
