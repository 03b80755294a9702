// SPDX-License-Identifier: Apache-2.0
#include "copy_rows.hpp"

#include "block_bytes.hpp"
#include "copy_parts.hpp"

#include <algorithm>
#include <utility>

namespace devshare::host {
namespace {

// While a block is cold a row is a system call. So many and the block is mapped, which costs about as much.
constexpr std::uint64_t most_cold_rows = 16;

// Goes along an end from its first byte to its last: nothing is looked up for a row.
class Walk {
 public:
  explicit Walk(std::vector<Part> parts) : parts_(std::move(parts)), part_(parts_.begin()) {}

  // In the part that the walk has come to.
  std::uint64_t left() const { return part_->size - done_; }

  Part take(std::uint64_t count) {
    Part taken = *part_;
    taken.size = count;
    if (taken.block != nullptr) {
      taken.offset += done_;
    } else {
      taken.host += done_;
    }
    go_on(count);
    return taken;
  }

  void skip(std::uint64_t count) {
    while (count != 0) {
      const std::uint64_t step = std::min(count, left());
      go_on(step);
      count -= step;
    }
  }

  void map_all() {
    for (const Part& part : parts_) {
      if (part.block != nullptr) (void)map_block(*part.block);  // refused, it stays cold: slower, not wrong
    }
  }

 private:
  void go_on(std::uint64_t count) {
    done_ += count;
    if (left() != 0) return;
    ++part_;
    done_ = 0;
  }

  std::vector<Part> parts_;
  std::vector<Part>::const_iterator part_;
  std::uint64_t done_ = 0;  // of that part
};

int move_row(Walk& to, Walk& from, std::uint64_t width) {
  while (width != 0) {
    const std::uint64_t step = std::min({width, to.left(), from.left()});
    if (const int error = move_part(to.take(step), from.take(step), step)) return error;
    width -= step;
  }
  return 0;
}

}  // namespace

acl::aclError move_rows(const CopyEnd& to, void* destination, const CopyEnd& from, const Rows& rows) {
  const std::uint64_t bytes = rows.width * rows.height;
  if (rows.height == 1 || (rows.to_pitch == rows.width && rows.from_pitch == rows.width)) {
    return move_bytes(to, destination, from, bytes);
  }
  std::uint64_t to_span = 0;
  std::uint64_t from_span = 0;
  (void)rows.span(rows.to_pitch, &to_span);
  (void)rows.span(rows.from_pitch, &from_span);
  Walk target(parts_of(to, destination, to_span));
  Walk source(parts_of(from, const_cast<void*>(from.address), from_span));
  if (rows.height > most_cold_rows) {
    target.map_all();
    source.map_all();
  }
  for (std::uint64_t row = 0; row < rows.height; ++row) {
    if (row != 0) {
      target.skip(rows.to_pitch - rows.width);
      source.skip(rows.from_pitch - rows.width);
    }
    if (const int error = move_row(target, source, rows.width)) return report_move(error, bytes);
  }
  return 0;
}

}  // namespace devshare::host
