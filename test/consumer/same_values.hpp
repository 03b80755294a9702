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
static_assert(ours::mem_attr::p2p_huge_1g == static_cast<int>(ACL_MEM_P2P_HUGE1G));
static_assert(ours::mem_location_type::host_numa == static_cast<int>(ACL_MEM_LOCATION_TYPE_HOST_NUMA));
static_assert(ours::share_type::fabric == static_cast<int>(ACL_MEM_SHARE_HANDLE_TYPE_FABRIC));
static_assert(ours::vmm_export::disable_pid_validation == ACL_RT_VMM_EXPORT_FLAG_DISABLE_PID_VALIDATION);
static_assert(ours::mem_access::read_write == static_cast<int>(ACL_RT_MEM_ACCESS_FLAGS_READWRITE));
static_assert(ours::granularity::recommended == static_cast<int>(ACL_RT_MEM_ALLOC_GRANULARITY_RECOMMENDED));
static_assert(ours::host_register_type::read_only == static_cast<int>(ACL_HOST_REGISTER_READONLY));
static_assert(ours::host_register_flag::pinned == ACL_HOST_REG_PINNED);
static_assert(sizeof(ours::aclrtMemFabricHandle) == sizeof(::aclrtMemFabricHandle));
static_assert(offsetof(ours::aclrtPhysicalMemProp, location) == offsetof(::aclrtPhysicalMemProp, location));
static_assert(offsetof(ours::aclrtPhysicalMemProp, reserve) == offsetof(::aclrtPhysicalMemProp, reserve));
static_assert(offsetof(ours::aclrtMemAccessDesc, location) == offsetof(::aclrtMemAccessDesc, location));
static_assert(offsetof(ours::aclrtPtrAttributes, pageSize) == offsetof(::aclrtPtrAttributes, pageSize));

}  // namespace same_values
