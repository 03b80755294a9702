// SPDX-License-Identifier: Apache-2.0
// The checksum of both kinds of tickets, once more as docs/ticket.md has it: damage must not be all that is tried.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

// The bytes, whole words, with the last one put right.
inline std::vector<std::byte> with_right_sum(std::span<const std::byte> bytes) {
  std::vector<std::byte> corrected(bytes.begin(), bytes.end());
  std::uint64_t sum = 0xcbf29ce484222325;
  for (std::size_t i = 0; i + 8 < corrected.size(); i += 8) {
    std::uint64_t word = 0;
    for (std::size_t j = 0; j < 8; ++j) word |= std::to_integer<std::uint64_t>(corrected[i + j]) << (8 * j);
    sum = (sum ^ word) * 0x9e3779b97f4a7c15;
    sum ^= sum >> 32;
  }
  for (std::size_t j = 0; j < 8; ++j) corrected[corrected.size() - 8 + j] = static_cast<std::byte>(sum >> (8 * j));
  return corrected;
}
