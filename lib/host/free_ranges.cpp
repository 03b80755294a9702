// SPDX-License-Identifier: Apache-2.0
#include "free_ranges.hpp"

#include <algorithm>

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
    if (first == begin) {
      free_.erase(row);
    } else {
      row->second = first;
    }
    if (last != end) free_.emplace(last, end);
    return first;
  }
  return std::nullopt;
}

void FreeRanges::give_back(std::uint32_t begin, std::uint32_t count) {
  std::uint32_t end = begin + count;
  auto after = free_.lower_bound(begin);
  if (after != free_.end() && after->first == end) {
    end = after->second;
    after = free_.erase(after);
  }
  if (after != free_.begin()) {
    const auto before = std::prev(after);
    if (before->second == begin) {
      before->second = end;
      return;
    }
  }
  free_.emplace_hint(after, begin, end);
}

std::uint32_t FreeRanges::largest() const noexcept {
  std::uint32_t most = 0;
  for (const auto& [begin, end] : free_) most = std::max(most, end - begin);
  return most;
}

}  // namespace devshare::host
