// SPDX-License-Identifier: Apache-2.0
#include "mapping_limit.hpp"

#include "failure.hpp"

#include <fmt/format.h>

#include <fstream>

namespace devshare::host {

acl::aclError refuse_mapping(std::uint64_t bytes, int error) {
  std::uint64_t limit = 0;
  std::ifstream("/proc/sys/vm/max_map_count") >> limit;
  return refuse(acl::code::rt_memory_allocation,
                {.reason = Reason::mapping_limit, .system_errno = error, .needed = bytes, .available = limit},
                fmt::format("the kernel gives no mapping of {} bytes; a process may have {} mappings "
                            "(vm.max_map_count) and RLIMIT_AS bytes of them",
                            bytes, limit));
}

}  // namespace devshare::host
