// SPDX-License-Identifier: Apache-2.0
#include "runtime_state.hpp"

#include <devshare/host.hpp>

namespace devshare::detail {

Error view_refused(const Cause& why, std::size_t size) noexcept {
  return Error(kind_of(why.reason), Operation::view, acl::Entry::none, 0, why.reason,
               {.device = why.device, .peer_device = why.peer_device, .pid = why.pid, .system_errno = why.system_errno,
                .needed = why.needed != 0 ? why.needed : size, .available = why.available});
}

}  // namespace devshare::detail
