// SPDX-License-Identifier: Apache-2.0
// The types of the ACL C interface that devshare uses, declared by us from the documented facts.
//
// Everything lives in devshare::acl and nothing is a macro, so a program may include the vendor's `acl/acl.h` as
// well: the layouts are equal, the names never meet. Values are grouped in small namespaces of constants because the
// vendor defines several of its names as macros.
#pragma once

#include <cstddef>
#include <cstdint>

namespace devshare::acl {

using aclError = int;

using aclrtContext = void*;
using aclrtStream = void*;  // null: the default stream of the current context
using aclrtEvent = void*;
using aclrtNotify = void*;

using aclrtMemMallocPolicy = int;   // values in malloc_policy
using aclrtMemcpyKind = int;        // values in memcpy_kind
using aclrtMemAttr = int;           // values in mem_attr
using aclrtIpcMemAttrType = int;    // values in ipc_attr
using aclrtStreamStatus = int;      // values in stream_status
using aclrtEventRecordedStatus = int;  // values in event_status

// One server of a super-pod and the processes of it that may import: the argument of
// aclrtIpcMemImportPidInterServer.
struct aclrtServerPid {
  std::uint32_t sdid;
  std::int32_t* pid;
  std::size_t num;
};

// The length of an export key, its terminating NUL included. A key is opaque bytes, not text (R61).
inline constexpr std::size_t ipc_key_size = 65;

// aclrtIpcMemSetImportPid takes at most this many pids in one call (R16).
inline constexpr std::size_t max_import_pids_per_call = 31;

namespace ipc_export {
inline constexpr std::uint64_t listed = 0;                  // only admitted pids may import
inline constexpr std::uint64_t disable_pid_validation = 1;  // whoever has the key may import
}  // namespace ipc_export

namespace ipc_import {
inline constexpr std::uint64_t plain = 0;               // the caller has enabled peer access
inline constexpr std::uint64_t enable_peer_access = 1;  // the runtime enables it, both ways
}  // namespace ipc_import

namespace ipc_attr {
inline constexpr aclrtIpcMemAttrType access_link = 0;
inline constexpr std::uint64_t link_sio = 0;
inline constexpr std::uint64_t link_hccs = 1;
inline constexpr std::uint64_t link_ub_one_port = 2;
inline constexpr std::uint64_t link_ub_multi_port = 3;
}  // namespace ipc_attr

namespace malloc_policy {
inline constexpr aclrtMemMallocPolicy huge_first = 0;
inline constexpr aclrtMemMallocPolicy huge_only = 1;
inline constexpr aclrtMemMallocPolicy normal_only = 2;
inline constexpr aclrtMemMallocPolicy huge_first_p2p = 3;
inline constexpr aclrtMemMallocPolicy huge_only_p2p = 4;
inline constexpr aclrtMemMallocPolicy normal_only_p2p = 5;
inline constexpr aclrtMemMallocPolicy huge_1g_only = 6;
inline constexpr aclrtMemMallocPolicy huge_1g_only_p2p = 7;
inline constexpr aclrtMemMallocPolicy low_band_width = 0x100;
inline constexpr aclrtMemMallocPolicy high_band_width = 0x1000;
inline constexpr aclrtMemMallocPolicy user_space_read_only = 0x100000;
}  // namespace malloc_policy

namespace memcpy_kind {
inline constexpr aclrtMemcpyKind host_to_host = 0;
inline constexpr aclrtMemcpyKind host_to_device = 1;
inline constexpr aclrtMemcpyKind device_to_host = 2;
inline constexpr aclrtMemcpyKind device_to_device = 3;
inline constexpr aclrtMemcpyKind automatic = 4;
inline constexpr aclrtMemcpyKind host_to_buffer_to_device = 5;
inline constexpr aclrtMemcpyKind inner_device_to_device = 6;
inline constexpr aclrtMemcpyKind inter_device_to_device = 7;
}  // namespace memcpy_kind

namespace mem_attr {
inline constexpr aclrtMemAttr ddr = 0;
inline constexpr aclrtMemAttr hbm = 1;
inline constexpr aclrtMemAttr ddr_huge = 2;
inline constexpr aclrtMemAttr ddr_normal = 3;
inline constexpr aclrtMemAttr hbm_huge = 4;
inline constexpr aclrtMemAttr hbm_normal = 5;
inline constexpr aclrtMemAttr ddr_p2p_huge = 6;
inline constexpr aclrtMemAttr ddr_p2p_normal = 7;
inline constexpr aclrtMemAttr hbm_p2p_huge = 8;
inline constexpr aclrtMemAttr hbm_p2p_normal = 9;
inline constexpr aclrtMemAttr hbm_huge_1g = 10;
inline constexpr aclrtMemAttr hbm_p2p_huge_1g = 11;
inline constexpr aclrtMemAttr normal = 12;  // from here on the location says whether the host's memory or the device's
inline constexpr aclrtMemAttr huge = 13;
inline constexpr aclrtMemAttr huge_1g = 14;
inline constexpr aclrtMemAttr p2p_normal = 15;
inline constexpr aclrtMemAttr p2p_huge = 16;
inline constexpr aclrtMemAttr p2p_huge_1g = 17;
}  // namespace mem_attr

namespace stream_flag {
inline constexpr std::uint32_t fast_launch = 0x1;
inline constexpr std::uint32_t fast_sync = 0x2;
inline constexpr std::uint32_t persistent = 0x4;
inline constexpr std::uint32_t huge = 0x8;
inline constexpr std::uint32_t cpu_schedule = 0x10;
inline constexpr std::uint32_t device_use_only = 0x20;
}  // namespace stream_flag

inline constexpr std::uint32_t lowest_stream_priority = 7;  // 0 is the highest

namespace stream_status {
inline constexpr aclrtStreamStatus complete = 0;
inline constexpr aclrtStreamStatus not_ready = 1;
}  // namespace stream_status

namespace event_flag {
inline constexpr std::uint32_t sync = 0x1;
inline constexpr std::uint32_t capture_stream_progress = 0x2;
inline constexpr std::uint32_t time_line = 0x8;
inline constexpr std::uint32_t device_use_only = 0x10;
inline constexpr std::uint32_t external = 0x20;
inline constexpr std::uint32_t ipc = 0x40;  // for other processes, and with no other flag (R49)
}  // namespace event_flag

namespace event_status {
inline constexpr aclrtEventRecordedStatus not_ready = 0;
inline constexpr aclrtEventRecordedStatus complete = 1;
}  // namespace event_status

// What names an event in another process: opaque bytes.
inline constexpr std::size_t ipc_event_handle_size = 64;
struct aclrtIpcEventHandle {
  char reserved[ipc_event_handle_size];
};

namespace notify_flag {
inline constexpr std::uint64_t plain = 0;
inline constexpr std::uint64_t device_use_only = 1;
}  // namespace notify_flag

// Not the numbers that memory has (R47).
namespace notify_export {
inline constexpr std::uint64_t listed = 0;
inline constexpr std::uint64_t disable_pid_validation = 2;
}  // namespace notify_export

namespace notify_import {
inline constexpr std::uint64_t plain = 0;
inline constexpr std::uint64_t enable_peer_access = 2;
}  // namespace notify_import

// When aclrtValueWait lets its stream go on.
namespace value_wait {
inline constexpr std::uint32_t at_least = 0;    // the signed difference of memory and value is not negative
inline constexpr std::uint32_t equal = 1;
inline constexpr std::uint32_t common_bits = 2;  // a bit of the value is set in memory
inline constexpr std::uint32_t nor = 3;          // a bit is set in neither
}  // namespace value_wait

}  // namespace devshare::acl
