// SPDX-License-Identifier: Apache-2.0
#include "queued_end.hpp"

#include "failure.hpp"
#include "host_memory.hpp"
#include "registration.hpp"

namespace devshare::host {

acl::aclError refuse_gone(const CopyEnd& end) {
  return refuse(acl::code::rt_drv_internal, {.reason = Reason::exporter_gone, .device = end.block.device()},
                "the exporter of this memory closed its key, freed it, or ended, while the task waited (R20)");
}

bool host_page_locked(const void* address, std::uint64_t count) {
  if (const auto block = host_block_with(address)) {
    const auto at = reinterpret_cast<std::uintptr_t>(address);
    return count <= block->size - (at - reinterpret_cast<std::uintptr_t>(block->base));
  }
  return is_registered(address, count);
}

}  // namespace devshare::host
