// SPDX-License-Identifier: Apache-2.0
#include "codes.hpp"

#include <cerrno>

namespace devshare::host {

std::string_view code_name(acl::aclError code) noexcept {
  switch (code) {
#define DEVSHARE_HOST_CODE_NAME(name, value, text) \
  case value:                                      \
    return text;
    DEVSHARE_ACL_CODES(DEVSHARE_HOST_CODE_NAME)
#undef DEVSHARE_HOST_CODE_NAME
    default:
      return "UNKNOWN";
  }
}

acl::aclError code_of_errno(int error) noexcept {
  namespace code = acl::code;
  switch (error) {
    case 0:
      return code::success;
    case EPERM:
      return code::rt_no_permission;
    case EFAULT:
      return code::rt_invalid_handle;
    case ENOMEM:
      return code::rt_memory_allocation;
    case ENODEV:
    case ENXIO:
      return code::rt_no_device;
    case EOPNOTSUPP:
      return code::rt_feature_not_support;
    case ENOSPC:
      return code::rt_resource_alloc_fail;
    default:
      return code::rt_drv_internal;
  }
}

}  // namespace devshare::host
