// SPDX-License-Identifier: Apache-2.0
// The free parts of a range of numbered granules, lowest first, so that two processes that do the same get the same
// numbers and a freed number is really used again (B041). Not thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <optional>

namespace devshare::host {

class FreeRanges {
 public:
  // Everything in [begin, end) is free.
  void reset(std::uint32_t begin, std::uint32_t end);

  // The lowest `count` free granules in a row that start at a multiple of `alignment`; none when there are none.
  std::optional<std::uint32_t> take(std::uint32_t count, std::uint32_t alignment);

  // These granules; false when one of them is taken.
  bool take_at(std::uint32_t begin, std::uint32_t count);

  // Takes back what take() gave.
  void give_back(std::uint32_t begin, std::uint32_t count);

  std::uint32_t largest() const noexcept;  // granules in the longest free row

 private:
  using Rows = std::map<std::uint32_t, std::uint32_t>;
  void move_begin(Rows::iterator row, std::uint32_t begin);

  Rows free_;  // begin -> end, never touching one another
};

}  // namespace devshare::host
