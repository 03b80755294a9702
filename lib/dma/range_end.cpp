// SPDX-License-Identifier: Apache-2.0
// The end of a range with all that is mapped in it: to be tried again where something is refused, or once and for all.
#include "range.hpp"

#include <devshare/detail/owned.hpp>

namespace devshare::detail {
namespace {

Backing backing_of(const HandleRecord& handle) noexcept {
  return {handle.property, handle.host, handle.size, handle.physical_size};
}

}  // namespace

std::optional<Error> drop_all(const std::vector<HandleRecord*>& handles) noexcept {
  std::optional<Error> first;
  for (HandleRecord* const handle : handles) {
    if (auto dropped = drop_or_park(handle); !dropped && !first) first = dropped.error();
  }
  return first;
}

Result<std::vector<HandleRecord*>> unmap_all(Range& range, Operation operation) noexcept {
  std::vector<HandleRecord*> handles;
  handles.reserve(range.pieces.size());
  std::optional<Error> refused;
  while (!range.pieces.empty() && !refused) {
    auto unmapped = unmap_last_piece(range, operation);
    if (unmapped) {
      handles.push_back(*unmapped);
    } else {
      refused = unmapped.error();
    }
  }
  while (refused && !handles.empty() && map_piece(range, handles.back(), operation)) handles.pop_back();
  for (const HandleRecord* const handle : handles) range.released.insert(range.released.begin(), backing_of(*handle));
  if (!refused) return handles;
  (void)drop_all(handles);
  return *refused;
}

void map_again(Range& range, std::vector<HandleRecord*>& handles, Operation operation) noexcept {
  while (!handles.empty() && map_piece(range, handles.back(), operation)) {
    handles.pop_back();
    range.released.erase(range.released.begin());
  }
  (void)drop_all(handles);
}

Result<std::vector<HandleRecord*>> take_apart(Range* range, Operation operation) noexcept {
  DEVSHARE_TRY(handles, unmap_all(*range, operation));
  if (auto released = release_range(range, operation); !released) {
    map_again(*range, handles, operation);
    return released.error();
  }
  return handles;
}

Result<void> end_range(Range* range, Operation operation) noexcept {
  std::vector<HandleRecord*> handles;
  handles.reserve(range->pieces.size());
  while (!range->pieces.empty()) {
    auto unmapped = unmap_last_piece(*range, operation);
    if (!unmapped) {
      // What is mapped must not be freed, and what holds it must not be released: it stays, and is seen.
      (void)drop_all(handles);
      park(range, range->mapped(), unmapped.error());
      return unmapped.error();
    }
    handles.push_back(*unmapped);
  }
  const Result<void> released = release_range(range, operation);
  const std::optional<Error> refused = drop_all(handles);
  if (!released) {
    park(range, range->reserved, released.error());
    return released;
  }
  if (refused) return *refused;
  return {};
}

void abandon_range(Range* range) noexcept {
  for (const Piece& piece : range->pieces) piece.handle->abandon(piece.handle);
  delete range;
}

}  // namespace devshare::detail
