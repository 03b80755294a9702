// SPDX-License-Identifier: Apache-2.0
// The records of blocks by number, in chunks that never move. Finding one takes no lock; taking and giving back needs
// one of the caller's.
#pragma once

#include "block_record.hpp"

#include <array>
#include <vector>

namespace devshare::host {

class BlockPool {
 public:
  static constexpr std::uint32_t chunk_records = 256;
  static constexpr std::uint32_t max_records = chunk_records * 16384;  // more than granules in the window

  // A record that is not live, or null when all are. Its number is never 0.
  Block* take();
  void give_back(Block& record) { free_.push_back(record.number); }

  // `number` is one that take() gave out at some time.
  Block& at(std::uint32_t number) const noexcept {
    return chunks_[number / chunk_records].load(std::memory_order_acquire)[number % chunk_records];
  }

  template <class Visit>
  void for_each(Visit visit) const {
    for (std::uint32_t number = 1; number <= made_; ++number) visit(at(number));
  }

 private:
  std::array<std::atomic<Block*>, max_records / chunk_records> chunks_{};
  std::vector<std::uint32_t> free_;
  std::uint32_t made_ = 0;
};

// The words of the window name records of this pool from now on.
void name_blocks_of(const BlockPool& pool) noexcept;

}  // namespace devshare::host
