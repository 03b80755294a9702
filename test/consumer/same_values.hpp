// SPDX-License-Identifier: Apache-2.0
// Our declarations of the ACL interface against the vendor's, where both are in sight: equal values and layouts.
#pragma once

#include <cstddef>
#include <type_traits>

namespace same_values {

namespace ours = devshare::acl;

static_assert(std::is_same_v<ours::aclError, ::aclError>);
static_assert(sizeof(ours::aclrtMemMallocPolicy) == sizeof(::aclrtMemMallocPolicy));
static_assert(sizeof(ours::aclrtMemcpyKind) == sizeof(::aclrtMemcpyKind));
static_assert(sizeof(ours::aclrtServerPid) == sizeof(::aclrtServerPid));
static_assert(offsetof(ours::aclrtServerPid, pid) == offsetof(::aclrtServerPid, pid));
static_assert(offsetof(ours::aclrtServerPid, num) == offsetof(::aclrtServerPid, num));

static_assert(ours::code::invalid_param == ACL_ERROR_INVALID_PARAM);
static_assert(ours::code::repeat_initialize == ACL_ERROR_REPEAT_INITIALIZE);
static_assert(ours::code::rt_param_invalid == ACL_ERROR_RT_PARAM_INVALID);
static_assert(ours::code::rt_context_null == ACL_ERROR_RT_CONTEXT_NULL);
static_assert(ours::code::rt_no_permission == ACL_ERROR_RT_NO_PERMISSION);
static_assert(ours::code::rt_drv_internal == ACL_ERROR_RT_DRV_INTERNAL_ERROR);
static_assert(ours::malloc_policy::huge_first == static_cast<int>(ACL_MEM_MALLOC_HUGE_FIRST));
static_assert(ours::malloc_policy::normal_only_p2p == static_cast<int>(ACL_MEM_MALLOC_NORMAL_ONLY_P2P));
static_assert(ours::malloc_policy::user_space_read_only == static_cast<int>(ACL_MEM_ACCESS_USER_SPACE_READONLY));
static_assert(ours::memcpy_kind::device_to_device == static_cast<int>(ACL_MEMCPY_DEVICE_TO_DEVICE));
static_assert(ours::mem_attr::hbm == static_cast<int>(ACL_HBM_MEM));
static_assert(ours::ipc_export::disable_pid_validation == ACL_RT_IPC_MEM_EXPORT_FLAG_DISABLE_PID_VALIDATION);
static_assert(ours::ipc_import::enable_peer_access == ACL_RT_IPC_MEM_IMPORT_FLAG_ENABLE_PEER_ACCESS);
static_assert(ours::ipc_attr::link_hccs == ACL_RT_IPC_MEM_ATTR_ACCESS_LINK_HCCS);

}  // namespace same_values
