// SPDX-License-Identifier: Apache-2.0
// The ends of a copy that stands in a stream.
//
// Host memory that is not page-locked (neither of aclrtMallocHost nor registered) makes the call wait for its turn and
// its end, as documented: such memory may be gone as soon as the caller goes on.
#pragma once

#include "block_record.hpp"
#include "copy_ends.hpp"
#include "failure.hpp"

#include <cstdint>
#include <utility>

namespace devshare::host {

// An end whose memory must not be freed while the task waits: a free says so instead of waiting for it (R5).
class QueuedEnd {
 public:
  QueuedEnd() noexcept = default;
  QueuedEnd(QueuedEnd&&) noexcept = default;
  QueuedEnd& operator=(QueuedEnd&&) = delete;
  ~QueuedEnd() {
    for_each([](PinnedBlock& block) { block.release()->unpin_queued(); });
  }

  // Refused when the memory is being freed at this moment.
  acl::aclError take(CopyEnd&& end);

  const CopyEnd& operator*() const { return end_; }

  // What can have changed since the call.
  acl::aclError check_still_there() const {
    if (!end_.in_block() || !end_.block.exporter_gone()) return acl::code::success;
    return refuse(acl::code::rt_drv_internal, {.reason = Reason::exporter_gone, .device = end_.block.device()},
                  "the exporter of this memory closed its key, freed it, or ended, while the task waited (R20)");
  }

 private:
  template <class Visit>
  void for_each(Visit visit) {
    if (!end_.in_block()) return;
    visit(end_.block);
    if (end_.more == nullptr) return;
    for (PinnedBlock& piece : *end_.more) visit(piece);
  }

  CopyEnd end_;
};

// Whether the `count` bytes stay where they are until somebody says otherwise.
bool page_locked(const CopyEnd& end, std::uint64_t count);

}  // namespace devshare::host
