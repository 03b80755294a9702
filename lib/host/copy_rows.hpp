// SPDX-License-Identifier: Apache-2.0
// A matrix of bytes, copied row by row between two ends whose rows lie at distances of their own.
#pragma once

#include "copy_ends.hpp"

#include <cstdint>

namespace devshare::host {

struct Rows {
  std::uint64_t width = 0;  // bytes of a row
  std::uint64_t height = 0;
  std::uint64_t to_pitch = 0;  // from the start of a row to that of the next, width at least
  std::uint64_t from_pitch = 0;

  // From the first byte to the last, of rows at that distance. False: more than there are addresses.
  bool span(std::uint64_t pitch, std::uint64_t* bytes) const noexcept {
    std::uint64_t before_the_last = 0;
    return !__builtin_mul_overflow(height - 1, pitch, &before_the_last) &&
           !__builtin_add_overflow(before_the_last, width, bytes);
  }
};

// The bytes, after everything was checked: both ends were resolved for their whole span, and one of them is in a block.
// What lies between the rows is left alone. `destination` is where `to` is if that is host memory.
acl::aclError move_rows(const CopyEnd& to, void* destination, const CopyEnd& from, const Rows& rows);

}  // namespace devshare::host
