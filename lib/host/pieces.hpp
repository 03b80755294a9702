// SPDX-License-Identifier: Apache-2.0
// Ranges that go on from one piece of a reservation into the next.
#pragma once

#include "block.hpp"

#include <vector>

namespace devshare::host {

// Pins the pieces of the same reservation behind `first`, until the range of `count` bytes at `offset` in it is covered.
// True when it is; else `behind` has the pieces up to the first hole. Blocks that are no pieces have nothing behind
// them.
bool pin_pieces_behind(const PinnedBlock& first, std::uint64_t offset, std::uint64_t count,
                       std::vector<PinnedBlock>* behind, Pin pin = Pin::of_call);

}  // namespace devshare::host
