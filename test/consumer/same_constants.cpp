// SPDX-License-Identifier: Apache-2.0
// Every constant of the headers for programs in C against ours, of which the host runtime is made.
#include <acl/acl.h>

#include <devshare/acl/codes.hpp>
#include <devshare/acl/vmm_types.hpp>

#include <cstdint>

namespace {

namespace ours = devshare::acl;

#define DEVSHARE_SAME(name, theirs) \
  static_assert(static_cast<std::int64_t>(ours::name) == static_cast<std::int64_t>(theirs))

DEVSHARE_SAME(code::success, ACL_SUCCESS);
DEVSHARE_SAME(code::invalid_param, ACL_ERROR_INVALID_PARAM);
DEVSHARE_SAME(code::uninitialize, ACL_ERROR_UNINITIALIZE);
DEVSHARE_SAME(code::repeat_initialize, ACL_ERROR_REPEAT_INITIALIZE);
DEVSHARE_SAME(code::invalid_file, ACL_ERROR_INVALID_FILE);
DEVSHARE_SAME(code::repeat_finalize, ACL_ERROR_REPEAT_FINALIZE);
DEVSHARE_SAME(code::resource_not_cleared, ACL_ERROR_RELATIVE_RESOURCE_NOT_CLEARED);
DEVSHARE_SAME(code::bad_alloc, ACL_ERROR_BAD_ALLOC);
DEVSHARE_SAME(code::api_not_support, ACL_ERROR_API_NOT_SUPPORT);
DEVSHARE_SAME(code::invalid_device, ACL_ERROR_INVALID_DEVICE);
DEVSHARE_SAME(code::address_unaligned, ACL_ERROR_MEMORY_ADDRESS_UNALIGNED);
DEVSHARE_SAME(code::resource_not_match, ACL_ERROR_RESOURCE_NOT_MATCH);
DEVSHARE_SAME(code::invalid_resource_handle, ACL_ERROR_INVALID_RESOURCE_HANDLE);
DEVSHARE_SAME(code::feature_unsupported, ACL_ERROR_FEATURE_UNSUPPORTED);
DEVSHARE_SAME(code::storage_over_limit, ACL_ERROR_STORAGE_OVER_LIMIT);
DEVSHARE_SAME(code::internal_error, ACL_ERROR_INTERNAL_ERROR);
DEVSHARE_SAME(code::failure, ACL_ERROR_FAILURE);
DEVSHARE_SAME(code::rt_failure, ACL_ERROR_RT_FAILURE);
DEVSHARE_SAME(code::drv_failure, ACL_ERROR_DRV_FAILURE);
DEVSHARE_SAME(code::rt_param_invalid, ACL_ERROR_RT_PARAM_INVALID);
DEVSHARE_SAME(code::rt_invalid_deviceid, ACL_ERROR_RT_INVALID_DEVICEID);
DEVSHARE_SAME(code::rt_context_null, ACL_ERROR_RT_CONTEXT_NULL);
DEVSHARE_SAME(code::rt_stream_context, ACL_ERROR_RT_STREAM_CONTEXT);
DEVSHARE_SAME(code::rt_addr_unaligned, ACL_ERROR_RT_ADDR_UNALIGNED);
DEVSHARE_SAME(code::rt_invalid_memory_type, ACL_ERROR_RT_INVALID_MEMORY_TYPE);
DEVSHARE_SAME(code::rt_invalid_handle, ACL_ERROR_RT_INVALID_HANDLE);
DEVSHARE_SAME(code::rt_invalid_malloc_type, ACL_ERROR_RT_INVALID_MALLOC_TYPE);
DEVSHARE_SAME(code::rt_wait_timeout, ACL_ERROR_RT_WAIT_TIMEOUT);
DEVSHARE_SAME(code::rt_task_timeout, ACL_ERROR_RT_TASK_TIMEOUT);
DEVSHARE_SAME(code::rt_feature_not_support, ACL_ERROR_RT_FEATURE_NOT_SUPPORT);
DEVSHARE_SAME(code::rt_memory_allocation, ACL_ERROR_RT_MEMORY_ALLOCATION);
DEVSHARE_SAME(code::rt_memory_free, ACL_ERROR_RT_MEMORY_FREE);
DEVSHARE_SAME(code::rt_no_device, ACL_ERROR_RT_NO_DEVICE);
DEVSHARE_SAME(code::rt_resource_alloc_fail, ACL_ERROR_RT_RESOURCE_ALLOC_FAIL);
DEVSHARE_SAME(code::rt_no_permission, ACL_ERROR_RT_NO_PERMISSION);
DEVSHARE_SAME(code::rt_no_event_resource, ACL_ERROR_RT_NO_EVENT_RESOURCE);
DEVSHARE_SAME(code::rt_no_stream_resource, ACL_ERROR_RT_NO_STREAM_RESOURCE);
DEVSHARE_SAME(code::rt_no_notify_resource, ACL_ERROR_RT_NO_NOTIFY_RESOURCE);
DEVSHARE_SAME(code::rt_over_limit, ACL_ERROR_RT_OVER_LIMIT);
DEVSHARE_SAME(code::rt_device_oom, ACL_ERROR_RT_DEVICE_OOM);
DEVSHARE_SAME(code::rt_timeout, ACL_ERROR_RT_TIMEOUT);
DEVSHARE_SAME(code::rt_link_type_not_supported, ACL_ERROR_RT_LINK_TYPE_NOT_SUPPORTED);
DEVSHARE_SAME(code::rt_internal_error, ACL_ERROR_RT_INTERNAL_ERROR);
DEVSHARE_SAME(code::rt_context_release, ACL_ERROR_RT_CONTEXT_RELEASE_ERROR);
DEVSHARE_SAME(code::rt_sys_dma, ACL_ERROR_RT_SYS_DMA_ERROR);
DEVSHARE_SAME(code::rt_aicore_exception, ACL_ERROR_RT_AICORE_EXCEPTION);
DEVSHARE_SAME(code::rt_aicpu_exception, ACL_ERROR_RT_AICPU_EXCEPTION);
DEVSHARE_SAME(code::rt_ipc_error, ACL_ERROR_RT_IPC_ERROR);
DEVSHARE_SAME(code::rt_dev_setup, ACL_ERROR_RT_DEV_SETUP_ERROR);
DEVSHARE_SAME(code::rt_stream_sync_timeout, ACL_ERROR_RT_STREAM_SYNC_TIMEOUT);
DEVSHARE_SAME(code::rt_event_sync_timeout, ACL_ERROR_RT_EVENT_SYNC_TIMEOUT);
DEVSHARE_SAME(code::rt_copy_data, ACL_ERROR_RT_COPY_DATA);
DEVSHARE_SAME(code::rt_device_mem, ACL_ERROR_RT_DEVICE_MEM_ERROR);
DEVSHARE_SAME(code::rt_link, ACL_ERROR_RT_LINK_ERROR);
DEVSHARE_SAME(code::rt_suspect_remote, ACL_ERROR_RT_SUSPECT_REMOTE_ERROR);
DEVSHARE_SAME(code::rt_drv_internal, ACL_ERROR_RT_DRV_INTERNAL_ERROR);
DEVSHARE_SAME(code::host_memory_already_registered, ACL_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
DEVSHARE_SAME(code::host_memory_not_registered, ACL_ERROR_HOST_MEMORY_NOT_REGISTERED);

DEVSHARE_SAME(ipc_export::listed, ACL_RT_IPC_MEM_EXPORT_FLAG_DEFAULT);
DEVSHARE_SAME(ipc_export::disable_pid_validation, ACL_RT_IPC_MEM_EXPORT_FLAG_DISABLE_PID_VALIDATION);

DEVSHARE_SAME(ipc_import::plain, ACL_RT_IPC_MEM_IMPORT_FLAG_DEFAULT);
DEVSHARE_SAME(ipc_import::enable_peer_access, ACL_RT_IPC_MEM_IMPORT_FLAG_ENABLE_PEER_ACCESS);

DEVSHARE_SAME(ipc_attr::access_link, ACL_RT_IPC_MEM_ATTR_ACCESS_LINK);
DEVSHARE_SAME(ipc_attr::link_sio, ACL_RT_IPC_MEM_ATTR_ACCESS_LINK_SIO);
DEVSHARE_SAME(ipc_attr::link_hccs, ACL_RT_IPC_MEM_ATTR_ACCESS_LINK_HCCS);
DEVSHARE_SAME(ipc_attr::link_ub_one_port, ACL_RT_IPC_MEM_ATTR_ACCESS_LINK_UB_ONE_PORT_PATH);
DEVSHARE_SAME(ipc_attr::link_ub_multi_port, ACL_RT_IPC_MEM_ATTR_ACCESS_LINK_UB_MULTI_PORT_PATH);

DEVSHARE_SAME(malloc_policy::huge_first, ACL_MEM_MALLOC_HUGE_FIRST);
DEVSHARE_SAME(malloc_policy::huge_only, ACL_MEM_MALLOC_HUGE_ONLY);
DEVSHARE_SAME(malloc_policy::normal_only, ACL_MEM_MALLOC_NORMAL_ONLY);
DEVSHARE_SAME(malloc_policy::huge_first_p2p, ACL_MEM_MALLOC_HUGE_FIRST_P2P);
DEVSHARE_SAME(malloc_policy::huge_only_p2p, ACL_MEM_MALLOC_HUGE_ONLY_P2P);
DEVSHARE_SAME(malloc_policy::normal_only_p2p, ACL_MEM_MALLOC_NORMAL_ONLY_P2P);
DEVSHARE_SAME(malloc_policy::huge_1g_only, ACL_MEM_MALLOC_HUGE1G_ONLY);
DEVSHARE_SAME(malloc_policy::huge_1g_only_p2p, ACL_MEM_MALLOC_HUGE1G_ONLY_P2P);
DEVSHARE_SAME(malloc_policy::low_band_width, ACL_MEM_TYPE_LOW_BAND_WIDTH);
DEVSHARE_SAME(malloc_policy::high_band_width, ACL_MEM_TYPE_HIGH_BAND_WIDTH);
DEVSHARE_SAME(malloc_policy::user_space_read_only, ACL_MEM_ACCESS_USER_SPACE_READONLY);

DEVSHARE_SAME(memcpy_kind::host_to_host, ACL_MEMCPY_HOST_TO_HOST);
DEVSHARE_SAME(memcpy_kind::host_to_device, ACL_MEMCPY_HOST_TO_DEVICE);
DEVSHARE_SAME(memcpy_kind::device_to_host, ACL_MEMCPY_DEVICE_TO_HOST);
DEVSHARE_SAME(memcpy_kind::device_to_device, ACL_MEMCPY_DEVICE_TO_DEVICE);
DEVSHARE_SAME(memcpy_kind::automatic, ACL_MEMCPY_DEFAULT);
DEVSHARE_SAME(memcpy_kind::host_to_buffer_to_device, ACL_MEMCPY_HOST_TO_BUF_TO_DEVICE);
DEVSHARE_SAME(memcpy_kind::inner_device_to_device, ACL_MEMCPY_INNER_DEVICE_TO_DEVICE);
DEVSHARE_SAME(memcpy_kind::inter_device_to_device, ACL_MEMCPY_INTER_DEVICE_TO_DEVICE);

DEVSHARE_SAME(mem_attr::ddr, ACL_DDR_MEM);
DEVSHARE_SAME(mem_attr::hbm, ACL_HBM_MEM);
DEVSHARE_SAME(mem_attr::ddr_huge, ACL_DDR_MEM_HUGE);
DEVSHARE_SAME(mem_attr::ddr_normal, ACL_DDR_MEM_NORMAL);
DEVSHARE_SAME(mem_attr::hbm_huge, ACL_HBM_MEM_HUGE);
DEVSHARE_SAME(mem_attr::hbm_normal, ACL_HBM_MEM_NORMAL);
DEVSHARE_SAME(mem_attr::ddr_p2p_huge, ACL_DDR_MEM_P2P_HUGE);
DEVSHARE_SAME(mem_attr::ddr_p2p_normal, ACL_DDR_MEM_P2P_NORMAL);
DEVSHARE_SAME(mem_attr::hbm_p2p_huge, ACL_HBM_MEM_P2P_HUGE);
DEVSHARE_SAME(mem_attr::hbm_p2p_normal, ACL_HBM_MEM_P2P_NORMAL);
DEVSHARE_SAME(mem_attr::hbm_huge_1g, ACL_HBM_MEM_HUGE1G);
DEVSHARE_SAME(mem_attr::hbm_p2p_huge_1g, ACL_HBM_MEM_P2P_HUGE1G);
DEVSHARE_SAME(mem_attr::normal, ACL_MEM_NORMAL);
DEVSHARE_SAME(mem_attr::huge, ACL_MEM_HUGE);
DEVSHARE_SAME(mem_attr::huge_1g, ACL_MEM_HUGE1G);
DEVSHARE_SAME(mem_attr::p2p_normal, ACL_MEM_P2P_NORMAL);
DEVSHARE_SAME(mem_attr::p2p_huge, ACL_MEM_P2P_HUGE);
DEVSHARE_SAME(mem_attr::p2p_huge_1g, ACL_MEM_P2P_HUGE1G);

DEVSHARE_SAME(stream_flag::fast_launch, ACL_STREAM_FAST_LAUNCH);
DEVSHARE_SAME(stream_flag::fast_sync, ACL_STREAM_FAST_SYNC);
DEVSHARE_SAME(stream_flag::persistent, ACL_STREAM_PERSISTENT);
DEVSHARE_SAME(stream_flag::huge, ACL_STREAM_HUGE);
DEVSHARE_SAME(stream_flag::cpu_schedule, ACL_STREAM_CPU_SCHEDULE);
DEVSHARE_SAME(stream_flag::device_use_only, ACL_STREAM_DEVICE_USE_ONLY);

DEVSHARE_SAME(stream_status::complete, ACL_STREAM_STATUS_COMPLETE);
DEVSHARE_SAME(stream_status::not_ready, ACL_STREAM_STATUS_NOT_READY);

DEVSHARE_SAME(event_flag::sync, ACL_EVENT_SYNC);
DEVSHARE_SAME(event_flag::capture_stream_progress, ACL_EVENT_CAPTURE_STREAM_PROGRESS);
DEVSHARE_SAME(event_flag::time_line, ACL_EVENT_TIME_LINE);
DEVSHARE_SAME(event_flag::device_use_only, ACL_EVENT_DEVICE_USE_ONLY);
DEVSHARE_SAME(event_flag::external, ACL_EVENT_EXTERNAL);
DEVSHARE_SAME(event_flag::ipc, ACL_EVENT_IPC);

DEVSHARE_SAME(event_status::not_ready, ACL_EVENT_RECORDED_STATUS_NOT_READY);
DEVSHARE_SAME(event_status::complete, ACL_EVENT_RECORDED_STATUS_COMPLETE);

DEVSHARE_SAME(notify_flag::plain, ACL_NOTIFY_DEFAULT);
DEVSHARE_SAME(notify_flag::device_use_only, ACL_NOTIFY_DEVICE_USE_ONLY);

DEVSHARE_SAME(notify_export::listed, ACL_RT_NOTIFY_EXPORT_FLAG_DEFAULT);
DEVSHARE_SAME(notify_export::disable_pid_validation, ACL_RT_NOTIFY_EXPORT_FLAG_DISABLE_PID_VALIDATION);

DEVSHARE_SAME(notify_import::plain, ACL_RT_NOTIFY_IMPORT_FLAG_DEFAULT);
DEVSHARE_SAME(notify_import::enable_peer_access, ACL_RT_NOTIFY_IMPORT_FLAG_ENABLE_PEER_ACCESS);

DEVSHARE_SAME(value_wait::at_least, ACL_VALUE_WAIT_GEQ);
DEVSHARE_SAME(value_wait::equal, ACL_VALUE_WAIT_EQ);
DEVSHARE_SAME(value_wait::common_bits, ACL_VALUE_WAIT_AND);
DEVSHARE_SAME(value_wait::nor, ACL_VALUE_WAIT_NOR);

DEVSHARE_SAME(mem_handle_type::none, ACL_MEM_HANDLE_TYPE_NONE);
DEVSHARE_SAME(mem_handle_type::posix, ACL_MEM_HANDLE_TYPE_POSIX);

DEVSHARE_SAME(mem_allocation_type::pinned, ACL_MEM_ALLOCATION_TYPE_PINNED);

DEVSHARE_SAME(mem_location_type::host, ACL_MEM_LOCATION_TYPE_HOST);
DEVSHARE_SAME(mem_location_type::device, ACL_MEM_LOCATION_TYPE_DEVICE);
DEVSHARE_SAME(mem_location_type::unregistered, ACL_MEM_LOCATION_TYPE_UNREGISTERED);
DEVSHARE_SAME(mem_location_type::managed, ACL_MEM_LOCATION_TYPE_MANAGED);
DEVSHARE_SAME(mem_location_type::host_numa, ACL_MEM_LOCATION_TYPE_HOST_NUMA);

DEVSHARE_SAME(share_type::local, ACL_MEM_SHARE_HANDLE_TYPE_DEFAULT);
DEVSHARE_SAME(share_type::fabric, ACL_MEM_SHARE_HANDLE_TYPE_FABRIC);

DEVSHARE_SAME(vmm_export::listed, ACL_RT_VMM_EXPORT_FLAG_DEFAULT);
DEVSHARE_SAME(vmm_export::disable_pid_validation, ACL_RT_VMM_EXPORT_FLAG_DISABLE_PID_VALIDATION);

DEVSHARE_SAME(mem_access::none, ACL_RT_MEM_ACCESS_FLAGS_NONE);
DEVSHARE_SAME(mem_access::read, ACL_RT_MEM_ACCESS_FLAGS_READ);
DEVSHARE_SAME(mem_access::read_write, ACL_RT_MEM_ACCESS_FLAGS_READWRITE);

DEVSHARE_SAME(granularity::minimum, ACL_RT_MEM_ALLOC_GRANULARITY_MINIMUM);
DEVSHARE_SAME(granularity::recommended, ACL_RT_MEM_ALLOC_GRANULARITY_RECOMMENDED);

DEVSHARE_SAME(host_register_type::mapped, ACL_HOST_REGISTER_MAPPED);
DEVSHARE_SAME(host_register_type::io_memory, ACL_HOST_REGISTER_IOMEMORY);
DEVSHARE_SAME(host_register_type::read_only, ACL_HOST_REGISTER_READONLY);

DEVSHARE_SAME(host_register_flag::mapped, ACL_HOST_REG_MAPPED);
DEVSHARE_SAME(host_register_flag::io_memory, ACL_HOST_REG_IOMEMORY);
DEVSHARE_SAME(host_register_flag::read_only, ACL_HOST_REG_READONLY);
DEVSHARE_SAME(host_register_flag::pinned, ACL_HOST_REG_PINNED);

static_assert(ours::ipc_event_handle_size == ACL_IPC_EVENT_HANDLE_SIZE);
static_assert(sizeof(ours::aclrtIpcEventHandle) == sizeof(::aclrtIpcEventHandle));

#undef DEVSHARE_SAME

}  // namespace

int main() {}
