// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <devshare/acl/types.hpp>

#include <cstdint>

namespace devshare::host {

// 207001 (Reason::mapping_limit): the kernel gave no mapping, and what its limits are.
[[nodiscard]] acl::aclError refuse_mapping(std::uint64_t bytes, int error);

}  // namespace devshare::host
