// SPDX-License-Identifier: Apache-2.0
// What owner and workers agree about: the weights of a model, which the owner rewrites in place while workers use them.
//
// Even generations are being written, odd ones are ready. The owner publishes before it begins to write and after it has
// written, so that a worker that read a byte too new, or too old, finds that the generation has moved on, and reads again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace weights {

inline constexpr bool is_ready(std::uint64_t generation) noexcept { return generation % 2 == 1; }

// The weights of a generation, of the owner that began with `seed`: every one of them depends on both.
inline std::vector<std::uint32_t> of(std::uint64_t generation, std::uint32_t seed, std::size_t count) {
  std::vector<std::uint32_t> all(count);
  std::uint32_t value = static_cast<std::uint32_t>(generation) * 2654435761u + seed;
  for (std::uint32_t& weight : all) weight = value = value * 1664525u + 1013904223u;
  all.front() = static_cast<std::uint32_t>(generation);
  return all;
}

// Whether they are all of one generation, as far as a worker can tell that does not know the seed.
inline bool are_of_one_generation(const std::vector<std::uint32_t>& all) noexcept {
  for (std::size_t i = 2; i < all.size(); ++i) {
    if (all[i] != all[i - 1] * 1664525u + 1013904223u) return false;
  }
  return true;
}

}  // namespace weights
