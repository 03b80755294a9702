// SPDX-License-Identifier: Apache-2.0
#include "queued_end.hpp"

#include "host_memory.hpp"
#include "registration.hpp"

namespace devshare::host {

acl::aclError QueuedEnd::take(CopyEnd&& end) {
  end_ = std::move(end);
  const PinnedBlock* ending = nullptr;
  for_each([&](PinnedBlock& block) {
    if (ending == nullptr && !block.record()->queue_pin()) ending = &block;
  });
  if (ending == nullptr) [[likely]]
    return acl::code::success;
  bool queued = true;
  for_each([&](PinnedBlock& block) {
    queued = queued && &block != ending;
    if (queued) block.record()->unqueue_pin();
  });
  const CopyEnd given_back = std::move(end_);
  return refuse(acl::code::rt_drv_internal, Reason::not_device_memory,
                "the memory is being freed, or its import closed, by another thread");
}

bool page_locked(const CopyEnd& end, std::uint64_t count) {
  if (end.in_block()) return true;
  if (const auto block = host_block_with(end.address)) {
    const auto at = reinterpret_cast<std::uintptr_t>(end.address);
    return count <= block->size - (at - reinterpret_cast<std::uintptr_t>(block->base));
  }
  return is_registered(end.address, count);
}

}  // namespace devshare::host
