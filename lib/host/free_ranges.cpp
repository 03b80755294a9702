// SPDX-License-Identifier: Apache-2.0
#include "free_ranges.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace devshare::host {

void FreeRanges::reset(std::uint32_t begin, std::uint32_t end) {
  free_.clear();
  if (begin < end) free_.emplace(begin, end);
}

std::optional<std::uint32_t> FreeRanges::take(std::uint32_t count, std::uint32_t alignment) {
  for (auto row = free_.begin(); row != free_.end(); ++row) {
    const auto [begin, end] = *row;
    const std::uint64_t start = (std::uint64_t{begin} + alignment - 1) / alignment * alignment;
    if (start + count > end) continue;
    const auto first = static_cast<std::uint32_t>(start);
    const std::uint32_t last = first + count;
    if (first != begin) {
      row->second = first;
      if (last != end) free_.emplace_hint(std::next(row), last, end);
    } else if (last != end) {
      move_begin(row, last);
    } else {
      free_.erase(row);
    }
    return first;
  }
  return std::nullopt;
}

bool FreeRanges::take_at(std::uint32_t begin, std::uint32_t count) {
  auto row = free_.upper_bound(begin);
  if (row == free_.begin()) return false;
  --row;
  const std::uint32_t last = begin + count;
  const auto [first, end] = *row;
  if (end < last || last < begin) return false;
  if (last != end) free_.emplace_hint(std::next(row), last, end);
  if (first != begin) {
    row->second = begin;
  } else {
    free_.erase(row);
  }
  return true;
}

void FreeRanges::give_back(std::uint32_t begin, std::uint32_t count) {
  const std::uint32_t end = begin + count;
  const auto after = free_.lower_bound(begin);
  const bool joins_after = after != free_.end() && after->first == end;
  const auto before = after != free_.begin() ? std::prev(after) : free_.end();
  if (before != free_.end() && before->second == begin) {
    before->second = joins_after ? after->second : end;
    if (joins_after) free_.erase(after);
  } else if (joins_after) {
    move_begin(after, begin);
  } else {
    free_.emplace_hint(after, begin, end);
  }
}

// The row keeps its place among the others, and its node: taking and giving back in turns allocates nothing.
void FreeRanges::move_begin(Rows::iterator row, std::uint32_t begin) {
  const auto after = std::next(row);
  auto node = free_.extract(row);
  node.key() = begin;
  free_.insert(after, std::move(node));
}

std::uint32_t FreeRanges::largest() const noexcept {
  std::uint32_t most = 0;
  for (const auto& [begin, end] : free_) most = std::max(most, end - begin);
  return most;
}

}  // namespace devshare::host
