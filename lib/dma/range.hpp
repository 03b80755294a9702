// SPDX-License-Identifier: Apache-2.0
// A reserved range of addresses and what is mapped in it: reserve, map, give access, unmap, release, free, in the one
// right order and back from wherever a step is refused. One thread at a time.
#pragma once

#include "handle_record.hpp"

#include <devshare/reservation.hpp>

#include <cstddef>
#include <optional>
#include <vector>

namespace devshare::detail {

struct Piece {
  HandleRecord* handle = nullptr;  // one reference of it
  std::size_t offset = 0;
};

// What a piece was, for the time it has no memory.
struct Backing {
  acl::aclrtPhysicalMemProp property;
  HostWish host;
  std::size_t size = 0;
  std::size_t physical_size = 0;
};

struct Range {
  Session session;
  std::int32_t device = -1;
  std::byte* address = nullptr;
  std::size_t reserved = 0;
  std::vector<Piece> pieces;  // one behind the other, from the first byte on
  std::vector<Backing> released;  // what was behind those pieces, where it sleeps

  std::size_t end() const noexcept;     // of the last piece, whole pages
  std::size_t mapped() const noexcept;  // the same, by the size that was asked for
};

// Gives up one reference of each, whatever becomes of the others, and parks what is refused; the first refusal, if there
// was one.
std::optional<Error> drop_all(const std::vector<HandleRecord*>& handles) noexcept;

// A range with nothing in it.
Result<Range*> reserve_range(const Session& session, std::int32_t device, std::size_t bytes,
                             Operation operation) noexcept;

// Maps a handle behind the last piece. The reference becomes the range's, or stays the caller's on a refusal, which
// leaves the range as it was.
Result<void> map_piece(Range& range, HandleRecord* handle, Operation operation) noexcept;

// Unmaps the last piece and gives its reference to the caller.
Result<HandleRecord*> unmap_last_piece(Range& range, Operation operation) noexcept;

// Releases the addresses of a range in which nothing is mapped; the range is gone then.
Result<void> release_range(Range* range, Operation operation) noexcept;

// Unmaps all pieces, last one first, and hands over their references; what they were is in `released` then. Refused,
// they are mapped again: one for which that fails as well goes to sleep by itself, with all behind it.
Result<std::vector<HandleRecord*>> unmap_all(Range& range, Operation operation) noexcept;

// Maps what unmap_all() unmapped again, from the first piece on; `handles` has the last one first. Those for which that
// fails sleep without their memory.
void map_again(Range& range, std::vector<HandleRecord*>& handles, Operation operation) noexcept;

// Unmaps all and releases the addresses, and hands over the references: the range is gone then. Refused, it is there as
// it was, but for what could not be mapped again.
Result<std::vector<HandleRecord*>> take_apart(Range* range, Operation operation) noexcept;

// For whoever cannot try again. Unmaps, releases, frees; the range is gone. What is refused is parked: a piece that
// cannot be unmapped with all that is mapped still, addresses, a handle.
Result<void> end_range(Range* range, Operation operation) noexcept;

// In a session that is over, or in a forked child.
void abandon_range(Range* range) noexcept;

}  // namespace devshare::detail
