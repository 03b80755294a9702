// SPDX-License-Identifier: Apache-2.0
// Times whole shares, from memory made in one process to memory given back, in any of several ways.
#pragma once

#include "process.hpp"
#include "rounds.hpp"
#include "way.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace devshare::bench {

// What a page table costs in a virtual machine can double from one turn to the next, for whoever has the turn: so turns
// are short, and there are many of them, and more where both sides map.
inline constexpr std::size_t shares_in_turn = 20;
inline constexpr int turns_with_copies = 120;
inline constexpr int turns_with_views = 240;

// This process exports on one processor, a child of it imports on another.
class ShareDriver {
 public:
  explicit ShareDriver(std::vector<std::unique_ptr<Way>> ways);

  // The time of a whole share in nanoseconds: the median of so many.
  double turn(std::uint32_t way, std::size_t bytes, std::size_t shares) const;

  // Its turns are of `shares_in_turn`. The driver outlives it.
  Contender contender(std::string name, std::uint32_t way, std::size_t bytes) const;

 private:
  void import_as_told(const Line& line) const;

  std::vector<std::unique_ptr<Way>> ways_;
  std::unique_ptr<Process> importer_;
};

}  // namespace devshare::bench
