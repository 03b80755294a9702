// SPDX-License-Identifier: Apache-2.0
// By hand: the two ways past memcpy that a processor may have for many bytes, with nothing around them. What they gain
// over memcpy is what there is to gain on a machine.
#pragma once

#include <cstddef>

namespace devshare::bench {

// Streaming stores, one line after the other, of 32 bytes where the processor has them. Both ends start at a line and
// `count` is a multiple of 128. False: this is another kind of processor.
bool stream_by_hand(std::byte* to, const std::byte* from, std::size_t count);

// `rep movsb`. False: likewise.
bool move_string_by_hand(std::byte* to, const std::byte* from, std::size_t count);

}  // namespace devshare::bench
