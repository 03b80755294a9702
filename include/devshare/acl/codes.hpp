// SPDX-License-Identifier: Apache-2.0
// The ACL error codes that devshare meets, by name. The list is the only place where a code and its name stand
// together; the constants here and the names printed by the error formatter are generated from it.
#pragma once

#include <devshare/acl/types.hpp>

// X(name here, value, name in the vendor's headers without its ACL_ERROR_ prefix)
#define DEVSHARE_ACL_CODES(X)                                        \
  X(success, 0, "SUCCESS")                                           \
  X(invalid_param, 100000, "INVALID_PARAM")                          \
  X(uninitialize, 100001, "UNINITIALIZE")                            \
  X(repeat_initialize, 100002, "REPEAT_INITIALIZE")                  \
  X(invalid_file, 100003, "INVALID_FILE")                            \
  X(repeat_finalize, 100037, "REPEAT_FINALIZE")                      \
  X(resource_not_cleared, 148051, "RELATIVE_RESOURCE_NOT_CLEARED")   \
  X(bad_alloc, 200000, "BAD_ALLOC")                                  \
  X(api_not_support, 200001, "API_NOT_SUPPORT")                      \
  X(invalid_device, 200002, "INVALID_DEVICE")                        \
  X(address_unaligned, 200003, "MEMORY_ADDRESS_UNALIGNED")           \
  X(resource_not_match, 200004, "RESOURCE_NOT_MATCH")                \
  X(invalid_resource_handle, 200005, "INVALID_RESOURCE_HANDLE")      \
  X(feature_unsupported, 200006, "FEATURE_UNSUPPORTED")              \
  X(storage_over_limit, 300000, "STORAGE_OVER_LIMIT")                \
  X(internal_error, 500000, "INTERNAL_ERROR")                        \
  X(failure, 500001, "FAILURE")                                      \
  X(rt_failure, 500003, "RT_FAILURE")                                \
  X(drv_failure, 500004, "DRV_FAILURE")                              \
  X(rt_param_invalid, 107000, "RT_PARAM_INVALID")                    \
  X(rt_invalid_deviceid, 107001, "RT_INVALID_DEVICEID")              \
  X(rt_context_null, 107002, "RT_CONTEXT_NULL")                      \
  X(rt_stream_context, 107003, "RT_STREAM_CONTEXT")                  \
  X(rt_addr_unaligned, 107008, "RT_ADDR_UNALIGNED")                  \
  X(rt_invalid_memory_type, 107016, "RT_INVALID_MEMORY_TYPE")        \
  X(rt_invalid_handle, 107017, "RT_INVALID_HANDLE")                  \
  X(rt_invalid_malloc_type, 107018, "RT_INVALID_MALLOC_TYPE")        \
  X(rt_wait_timeout, 107019, "RT_WAIT_TIMEOUT")                      \
  X(rt_task_timeout, 107020, "RT_TASK_TIMEOUT")                      \
  X(rt_feature_not_support, 207000, "RT_FEATURE_NOT_SUPPORT")        \
  X(rt_memory_allocation, 207001, "RT_MEMORY_ALLOCATION")            \
  X(rt_memory_free, 207002, "RT_MEMORY_FREE")                        \
  X(rt_no_device, 207004, "RT_NO_DEVICE")                            \
  X(rt_resource_alloc_fail, 207005, "RT_RESOURCE_ALLOC_FAIL")        \
  X(rt_no_permission, 207006, "RT_NO_PERMISSION")                    \
  X(rt_no_event_resource, 207007, "RT_NO_EVENT_RESOURCE")            \
  X(rt_no_stream_resource, 207008, "RT_NO_STREAM_RESOURCE")          \
  X(rt_no_notify_resource, 207009, "RT_NO_NOTIFY_RESOURCE")          \
  X(rt_over_limit, 207012, "RT_OVER_LIMIT")                          \
  X(rt_device_oom, 207018, "RT_DEVICE_OOM")                          \
  X(rt_timeout, 207020, "RT_TIMEOUT")                                \
  X(rt_link_type_not_supported, 207021, "RT_LINK_TYPE_NOT_SUPPORTED") \
  X(rt_internal_error, 507000, "RT_INTERNAL_ERROR")                  \
  X(rt_context_release, 507007, "RT_CONTEXT_RELEASE_ERROR")          \
  X(rt_sys_dma, 507013, "RT_SYS_DMA_ERROR")                          \
  X(rt_aicore_exception, 507015, "RT_AICORE_EXCEPTION")              \
  X(rt_aicpu_exception, 507018, "RT_AICPU_EXCEPTION")                \
  X(rt_ipc_error, 507022, "RT_IPC_ERROR")                            \
  X(rt_dev_setup, 507033, "RT_DEV_SETUP_ERROR")                      \
  X(rt_stream_sync_timeout, 507046, "RT_STREAM_SYNC_TIMEOUT")        \
  X(rt_event_sync_timeout, 507047, "RT_EVENT_SYNC_TIMEOUT")          \
  X(rt_copy_data, 507052, "RT_COPY_DATA")                            \
  X(rt_device_mem, 507053, "RT_DEVICE_MEM_ERROR")                    \
  X(rt_link, 507056, "RT_LINK_ERROR")                                \
  X(rt_suspect_remote, 507057, "RT_SUSPECT_REMOTE_ERROR")            \
  X(rt_drv_internal, 507899, "RT_DRV_INTERNAL_ERROR")                \
  X(host_memory_already_registered, 507910, "HOST_MEMORY_ALREADY_REGISTERED") \
  X(host_memory_not_registered, 507911, "HOST_MEMORY_NOT_REGISTERED")

namespace devshare::acl::code {

#define DEVSHARE_ACL_CODE(name, value, text) inline constexpr aclError name = value;
DEVSHARE_ACL_CODES(DEVSHARE_ACL_CODE)
#undef DEVSHARE_ACL_CODE

}  // namespace devshare::acl::code
