// SPDX-License-Identifier: Apache-2.0
// What devshare tells its callers of the pages behind their memory.
#pragma once

#include <devshare/acl/types.hpp>
#include <devshare/acl/vmm_types.hpp>
#include <devshare/host_pages.hpp>

#include <cstddef>

namespace devshare::host {

// Of all of a range: the smallest pages in it, and populated only where all of it is. Unknown where it is not all
// memory of the runtime's.
HostBacking backing_at(const void* address, std::size_t size) noexcept;

// Unknown for what is no live handle.
HostBacking backing_of(acl::aclrtDrvMemHandle handle) noexcept;

}  // namespace devshare::host
