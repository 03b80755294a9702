// SPDX-License-Identifier: Apache-2.0
// Times whole shares, from memory made in one process to memory given back, in any of several ways.
#pragma once

#include "process.hpp"
#include "way.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace devshare::bench {

// This process exports on one processor, a child of it imports on another.
class ShareDriver {
 public:
  explicit ShareDriver(std::vector<std::unique_ptr<Way>> ways);

  // The time of a whole share in nanoseconds: the median of so many.
  double turn(std::uint32_t way, std::size_t bytes, std::size_t shares) const;

 private:
  void import_as_told(const Line& line) const;

  std::vector<std::unique_ptr<Way>> ways_;
  std::unique_ptr<Process> importer_;
};

}  // namespace devshare::bench
