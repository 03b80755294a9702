// SPDX-License-Identifier: Apache-2.0
// SHA-256 (FIPS 180-4), fed piece by piece, so that no example needs a library or a whole file in memory for it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace examples {

using Digest = std::array<std::uint8_t, 32>;

class Sha256 {
 public:
  void update(std::span<const std::byte> bytes) noexcept;

  // The digest of all that was fed. Once: the object is spent.
  Digest finish() noexcept;

 private:
  static constexpr std::size_t block_size = 64;

  void mix(const std::byte* block) noexcept;

  std::array<std::uint32_t, 8> state_ = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                         0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::array<std::byte, block_size> block_{};  // what does not fill a block yet
  std::size_t held_ = 0;                       // bytes in it
  std::uint64_t length_ = 0;                   // bytes fed
};

std::string to_hex(const Digest& digest);

}  // namespace examples
