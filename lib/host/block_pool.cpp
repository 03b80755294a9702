// SPDX-License-Identifier: Apache-2.0
#include "block_pool.hpp"

#include <new>

namespace devshare::host {

Block* BlockPool::take() {
  if (!free_.empty()) {
    Block& record = at(free_.back());
    free_.pop_back();
    return &record;
  }
  const std::uint32_t number = made_ + 1;
  if (number >= max_records) return nullptr;
  std::atomic<Block*>& chunk = chunks_[number / chunk_records];
  if (chunk.load(std::memory_order_relaxed) == nullptr) {
    auto* const records = new (std::nothrow) Block[chunk_records];
    if (records == nullptr) return nullptr;
    chunk.store(records, std::memory_order_release);
  }
  made_ = number;
  Block& record = at(number);
  record.number = number;
  return &record;
}

}  // namespace devshare::host
