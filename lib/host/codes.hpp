// SPDX-License-Identifier: Apache-2.0
// Names of ACL codes, and the chain by which the driver's errors become them.
#pragma once

#include <devshare/acl/codes.hpp>

#include <string_view>

namespace devshare::host {

// "RT_DRV_INTERNAL_ERROR"; "UNKNOWN" for a number that is no code.
std::string_view code_name(acl::aclError code) noexcept;

// What a caller sees when the driver fails with this errno: kernel errno -> driver -> runtime -> ACL in one step. What
// the chain has no entry for is 507899, and nearly everything is.
acl::aclError code_of_errno(int error) noexcept;

}  // namespace devshare::host
