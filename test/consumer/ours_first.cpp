// SPDX-License-Identifier: Apache-2.0
// A program that speaks ACL by hand and devshare beside it. It compiles: nothing of ours meets a name of theirs.
#include <devshare/devshare.hpp>
#include <devshare/format.hpp>
#include <devshare/host.hpp>

#include <acl/acl.h>
#include <acl/acl_rt_api.h>

#include "same_values.hpp"

int main() {
  const aclError theirs = ACL_ERROR_RT_DRV_INTERNAL_ERROR;
  const devshare::acl::aclError ours = devshare::acl::code::rt_drv_internal;
  return theirs == ours ? 0 : 1;
}
