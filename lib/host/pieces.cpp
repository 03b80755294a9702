// SPDX-License-Identifier: Apache-2.0
#include "pieces.hpp"

#include <utility>

namespace devshare::host {

bool pin_pieces_behind(const PinnedBlock& first, std::uint64_t offset, std::uint64_t count,
                       std::vector<PinnedBlock>* behind, Pin pin) {
  if (first.alias() == nullptr) return false;
  const std::uintptr_t end = first.base() + offset + count;
  std::uintptr_t next = first.base() + first.size();
  if (end < first.base()) return false;
  while (next < end) {
    PinnedBlock piece(reinterpret_cast<const void*>(next), pin);
    if (!piece || piece.alias() != first.alias()) return false;
    next += piece.size();
    behind->push_back(std::move(piece));
  }
  return true;
}

}  // namespace devshare::host
