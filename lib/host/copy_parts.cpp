// SPDX-License-Identifier: Apache-2.0
#include "copy_parts.hpp"

#include "block_bytes.hpp"
#include "codes.hpp"
#include "failure.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

namespace devshare::host {

namespace code = acl::code;

std::vector<Part> parts_of(const CopyEnd& end, void* host, std::uint64_t count) {
  if (!end.in_block()) return {{.host = static_cast<std::byte*>(host), .size = count}};
  std::vector<Part> parts;
  parts.reserve(1 + end.behind().size());
  std::uint64_t offset = end.offset;
  const auto add = [&](const PinnedBlock& block) {
    const std::uint64_t size = std::min(block.size() - offset, count);
    parts.push_back({.block = block.record(), .offset = offset, .size = size});
    count -= size;
    offset = 0;
  };
  add(end.block);
  for (const PinnedBlock& piece : end.behind()) add(piece);
  return parts;
}

int move_part(const Part& to, const Part& from, std::uint64_t count) {
  if (to.block != nullptr && from.block != nullptr) {
    // One memory may be mapped at two addresses: then both ranges are in one block, and may overlap there.
    Block& source = from.block->memory != nullptr && from.block->memory == to.block->memory ? *to.block : *from.block;
    return move_block(*to.block, to.offset, source, from.offset, count);
  }
  if (to.block != nullptr) return write_block(*to.block, to.offset, from.host, count);
  return read_block(*from.block, from.offset, to.host, count);
}

acl::aclError report_move(int error, std::uint64_t count) {
  if (error == 0) [[likely]]
    return 0;
  if (error == EFAULT) {
    return refuse(
        code_of_errno(error), {.reason = Reason::bad_argument, .system_errno = error},
        fmt::format("the host range of {} bytes is not mapped, or not for this use; a part may be copied", count));
  }
  if (error == ENOSPC || error == ENOMEM) {
    return refuse(code::rt_memory_allocation, {.reason = Reason::no_space, .system_errno = error, .needed = count},
                  "the machine has no memory left behind this device memory");
  }
  return refuse(code_of_errno(error), {.reason = Reason::none, .system_errno = error},
                fmt::format("the bytes of the block cannot be reached: {}", std::generic_category().message(error)));
}

}  // namespace devshare::host
