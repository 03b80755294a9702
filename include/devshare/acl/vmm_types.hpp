// SPDX-License-Identifier: Apache-2.0
// The types of physical memory handles, address reservations and mappings (what drivers call virtual memory
// management), and of the tokens by which a handle is shared.
#pragma once

#include <cstddef>
#include <cstdint>

namespace devshare::acl {

using aclrtDrvMemHandle = void*;

using aclrtMemHandleType = int;         // values in mem_handle_type
using aclrtMemAllocationType = int;     // values in mem_allocation_type
using aclrtMemLocationType = int;       // values in mem_location_type
using aclrtMemSharedHandleType = int;   // values in share_type
using aclrtMemAccessFlags = int;        // values in mem_access
using aclrtMemGranularityOptions = int; // values in granularity
using aclrtHostRegisterType = int;      // values in host_register_type

struct aclrtMemLocation {
  std::uint32_t id;
  aclrtMemLocationType type;
};

struct aclrtPhysicalMemProp {
  aclrtMemHandleType handleType;
  aclrtMemAllocationType allocationType;
  int memAttr;  // values in mem_attr
  aclrtMemLocation location;
  std::uint64_t reserve;
};

struct aclrtMemAccessDesc {
  aclrtMemAccessFlags flags;
  aclrtMemLocation location;
  std::uint8_t rsv[12];
};

struct aclrtPtrAttributes {
  aclrtMemLocation location;
  std::uint32_t pageSize;
  std::uint32_t rsv[4];
};

// What travels when a handle is exported as a fabric token; the other kinds are plain 64-bit numbers.
struct aclrtMemFabricHandle {
  std::uint8_t data[128];
};

// aclrtMemSetPidToShareableHandle takes at most this many pids in one call.
inline constexpr std::size_t max_handle_pids_per_call = 65'535;

namespace mem_handle_type {
inline constexpr aclrtMemHandleType none = 0;
inline constexpr aclrtMemHandleType posix = 2;  // declared by newer headers, rejected by every call
}  // namespace mem_handle_type

namespace mem_allocation_type {
inline constexpr aclrtMemAllocationType pinned = 0;
}  // namespace mem_allocation_type

namespace mem_location_type {
inline constexpr aclrtMemLocationType host = 0;
inline constexpr aclrtMemLocationType device = 1;
inline constexpr aclrtMemLocationType unregistered = 2;
inline constexpr aclrtMemLocationType managed = 3;
inline constexpr aclrtMemLocationType host_numa = 4;
}  // namespace mem_location_type

namespace share_type {
inline constexpr aclrtMemSharedHandleType local = 0x1;   // one server: a std::uint64_t
inline constexpr aclrtMemSharedHandleType fabric = 0x2;  // also other servers of a super-pod: an aclrtMemFabricHandle
}  // namespace share_type

namespace vmm_export {
inline constexpr std::uint64_t listed = 0;                  // only admitted pids may import
inline constexpr std::uint64_t disable_pid_validation = 1;  // whoever has the token may import
}  // namespace vmm_export

namespace mem_access {
inline constexpr aclrtMemAccessFlags none = 0;
inline constexpr aclrtMemAccessFlags read = 1;
inline constexpr aclrtMemAccessFlags read_write = 3;
}  // namespace mem_access

namespace granularity {
inline constexpr aclrtMemGranularityOptions minimum = 0;
inline constexpr aclrtMemGranularityOptions recommended = 1;
}  // namespace granularity

namespace host_register_type {
inline constexpr aclrtHostRegisterType mapped = 0;
inline constexpr aclrtHostRegisterType io_memory = 4;
inline constexpr aclrtHostRegisterType read_only = 8;
}  // namespace host_register_type

namespace host_register_flag {  // of aclrtHostRegisterV2, may be OR-ed
inline constexpr std::uint32_t mapped = 0x2;
inline constexpr std::uint32_t io_memory = 0x4;
inline constexpr std::uint32_t read_only = 0x8;
inline constexpr std::uint32_t pinned = 0x10000000;
}  // namespace host_register_flag

}  // namespace devshare::acl
