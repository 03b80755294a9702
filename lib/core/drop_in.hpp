// SPDX-License-Identifier: Apache-2.0
// The library's side of the drop-in libascendcl.so, which calls nothing else of it.
#pragma once

#include <devshare/acl/table.hpp>
#include <devshare/detail/attributes.hpp>

namespace devshare::detail {

// The drop-in says that it is in the process, by the address of its aclInit, and gets what its functions call.
DEVSHARE_API const acl::Table& join_as_drop_in(const void* its_init) noexcept;

// The answer of a call that the host runtime does not have: 207000, with its name in the recent error text.
DEVSHARE_API acl::aclError not_implemented(const char* call) noexcept;

// Whether a library that was loaded is the drop-in: then it is the host runtime that is linked in here.
bool is_drop_in(void* library) noexcept;

}  // namespace devshare::detail
