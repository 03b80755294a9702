// SPDX-License-Identifier: Apache-2.0
// What copies and sets are made of, blocking or in a stream: their two ends, what is refused, and the bytes.
//
// The direction of a copy is read off the addresses, by the window's table; the caller's `kind` only has to be one that
// exists. R42 is the exception: on memory imported from another device the direction must be said.
#pragma once

#include "block_record.hpp"

#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace devshare::host {

// Blocking calls may do less than those in a stream: see check_devices.
enum class CopyWay : std::uint8_t { blocking, in_stream };

// One end of a copy: a range of a block, which is pinned while the copy waits and runs, or of host memory. A range of a
// reservation may go on through the pieces behind the first; all are pinned before a byte moves.
struct CopyEnd {
  PinnedBlock block;  // empty: host memory
  const void* address = nullptr;
  std::uint64_t offset = 0;
  std::unique_ptr<std::vector<PinnedBlock>> more;  // null: all is in the one block

  bool in_block() const { return static_cast<bool>(block); }
  bool on_device() const { return in_block() && record().device >= 0; }
  Block& record() const { return *block.record(); }
  std::span<const PinnedBlock> behind() const {
    return more != nullptr ? std::span<const PinnedBlock>(*more) : std::span<const PinnedBlock>();
  }
  bool mapped() const { return in_block() && record().origin == Origin::mapped; }
  bool on_other_device() const { return on_device() && record().device != record().local_device; }
  // Imported by key from another device: what R42 speaks of.
  bool from_afar() const { return on_other_device() && record().origin == Origin::imported; }

  // Gives up its memory together with what others do.
  void end(EndedPins& ended) noexcept {
    ended.add(std::move(block));
    if (more == nullptr) return;
    for (PinnedBlock& piece : *more) ended.add(std::move(piece));
  }
};

// Finds out what `address` is and that the whole range is in it. In a stream its memory is not freed before the task is
// over: a free says so instead of waiting for it (R5).
acl::aclError resolve_end(const void* address, std::uint64_t count, CopyWay way, CopyEnd* out);

acl::aclError check_writable(const CopyEnd& to);

// R42, and the peer access that any use of memory on another device needs.
acl::aclError check_devices(const CopyEnd& to, const CopyEnd& from, acl::aclrtMemcpyKind asked, CopyWay way);

// R42 names copies only: setting memory of another device is done by its owner, and takes peer access.
acl::aclError check_fill(const CopyEnd& to);

// The bytes, after everything was checked. `destination` is where `to` is if that is host memory.
acl::aclError move_bytes(const CopyEnd& to, void* destination, const CopyEnd& from, std::uint64_t count);
acl::aclError fill_bytes(const CopyEnd& to, void* host, unsigned char byte, std::uint64_t count);

}  // namespace devshare::host
