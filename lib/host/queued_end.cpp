// SPDX-License-Identifier: Apache-2.0
#include "queued_end.hpp"

#include "failure.hpp"
#include "host_memory.hpp"
#include "registration.hpp"

#include <utility>

namespace devshare::host {

acl::aclError refuse_gone(const CopyEnd& end) {
  return refuse(acl::code::rt_drv_internal, {.reason = Reason::exporter_gone, .device = end.block.device()},
                "the exporter of this memory closed its key, freed it, or ended, while the task waited (R20)");
}

HostHold hold_host(const void* address, std::uint64_t count) {
  HostHold hold = hold_host_block(address, count);
  return hold.holds() ? std::move(hold) : hold_registered(address, count);
}

}  // namespace devshare::host
