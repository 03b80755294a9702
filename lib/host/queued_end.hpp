// SPDX-License-Identifier: Apache-2.0
// The ends of a copy that stands in a stream.
//
// Host memory that is not page-locked (neither of aclrtMallocHost nor registered) makes the call wait for its turn and
// its end, as documented: such memory may be gone as soon as the caller goes on.
#pragma once

#include "block_record.hpp"
#include "copy_ends.hpp"
#include "host_hold.hpp"

#include <devshare/acl/codes.hpp>

#include <cstdint>

namespace devshare::host {

// What can have changed since the call: the exporter of imported memory may have taken it away.
acl::aclError refuse_gone(const CopyEnd& end);
inline acl::aclError check_still_there(const CopyEnd& end) {
  return end.in_block() && end.record().watch.gone() ? refuse_gone(end) : acl::code::success;
}

// Whether the `count` bytes stay where they are until the task is over: device memory is pinned already, and page-locked
// host memory is held from now on.
HostHold hold_host(const void* address, std::uint64_t count);
inline bool hold_end(const CopyEnd& end, std::uint64_t count, HostHold* hold) {
  if (end.in_block()) return true;
  *hold = hold_host(end.address, count);  // one of the two ends is the device's
  return hold->holds();
}

}  // namespace devshare::host
