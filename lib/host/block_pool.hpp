// SPDX-License-Identifier: Apache-2.0
// The records of blocks by number, in chunks that never move. Finding one takes no lock; taking and giving back needs
// one of the caller's.
#pragma once

#include "block_record.hpp"
#include "window.hpp"

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

// The pool whose records the words of the window name: that of the process that wrote them. A word that is not 0 in
// this process names a record here.
inline constinit std::atomic<const BlockPool*> named_pool{nullptr};

// The record that the window names at `address`, or null. It may be another block's by now, or nobody's: whoever wants
// to use it makes sure that it stays, and then asks it whether it is live and has the address.
inline Block* record_at(std::uintptr_t address) noexcept {
  const std::uint32_t number = window_word(address);
  return number != 0 ? &named_pool.load(std::memory_order_relaxed)->at(number) : nullptr;
}

}  // namespace devshare::host
