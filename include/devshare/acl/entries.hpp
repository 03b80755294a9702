// SPDX-License-Identifier: Apache-2.0
// Every ACL entry point that devshare uses: one list, from which the function table, the vendor loader and the host
// runtime's own entries are generated.
//
// X(name, return type, (parameters), required or optional, the first CANN release that has it)
//
// `required` entries must be in the library that is loaded. An `optional` one may be missing: the call that needs it
// then fails with Errc::unsupported_by_runtime and names it. Releases are those in which the call is documented; a
// runtime that has it earlier is welcome, since the loader asks the library and not its version.
#pragma once

#include <devshare/acl/types.hpp>

// clang-format off
#define DEVSHARE_ACL_ENTRIES(X)                                                                                        \
  X(aclInit,                          aclError,    (const char* configPath),                               required, "8.0")     \
  X(aclFinalize,                      aclError,    (),                                                     required, "8.0")     \
  X(aclFinalizeReference,             aclError,    (std::uint64_t* refCount),                              optional, "8.5.0")   \
  X(aclGetRecentErrMsg,               const char*, (),                                                     optional, "8.0")     \
  X(aclrtGetVersion,                  aclError,    (std::int32_t* major, std::int32_t* minor, std::int32_t* patch), optional, "8.0") \
  X(aclrtGetSocName,                  const char*, (),                                                     optional, "8.0")     \
  X(aclrtGetDeviceCount,              aclError,    (std::uint32_t* count),                                 required, "8.0")     \
  X(aclrtGetLogicDevIdByUserDevId,    aclError,    (std::int32_t userDevId, std::int32_t* logicDevId),     optional, "8.5.0")   \
  X(aclrtSetDevice,                   aclError,    (std::int32_t deviceId),                                required, "8.0")     \
  X(aclrtResetDevice,                 aclError,    (std::int32_t deviceId),                                required, "8.0")     \
  X(aclrtResetDeviceForce,            aclError,    (std::int32_t deviceId),                                optional, "8.0")     \
  X(aclrtGetDevice,                   aclError,    (std::int32_t* deviceId),                               required, "8.0")     \
  X(aclrtCreateContext,               aclError,    (aclrtContext* context, std::int32_t deviceId),         optional, "8.0")     \
  X(aclrtDestroyContext,              aclError,    (aclrtContext context),                                 optional, "8.0")     \
  X(aclrtSetCurrentContext,           aclError,    (aclrtContext context),                                 required, "8.0")     \
  X(aclrtGetCurrentContext,           aclError,    (aclrtContext* context),                                required, "8.0")     \
  X(aclrtDeviceCanAccessPeer,         aclError,    (std::int32_t* canAccessPeer, std::int32_t deviceId, std::int32_t peerDeviceId), required, "8.0") \
  X(aclrtDeviceEnablePeerAccess,      aclError,    (std::int32_t peerDeviceId, std::uint32_t flags),       required, "8.0")     \
  X(aclrtDeviceDisablePeerAccess,     aclError,    (std::int32_t peerDeviceId),                            required, "8.0")     \
  X(aclrtDevicePeerAccessStatus,      aclError,    (std::int32_t deviceId, std::int32_t peerDeviceId, std::int32_t* status), optional, "8.0") \
  X(aclrtMalloc,                      aclError,    (void** devPtr, std::size_t size, aclrtMemMallocPolicy policy), required, "8.0") \
  X(aclrtFree,                        aclError,    (void* devPtr),                                         required, "8.0")     \
  X(aclrtFreeWithDevSync,             aclError,    (void* devPtr),                                         optional, "8.5.0")   \
  X(aclrtMallocHost,                  aclError,    (void** hostPtr, std::size_t size),                     optional, "8.0")     \
  X(aclrtFreeHost,                    aclError,    (void* hostPtr),                                        optional, "8.0")     \
  X(aclrtGetMemInfo,                  aclError,    (aclrtMemAttr attr, std::size_t* free, std::size_t* total), optional, "8.0") \
  X(aclrtMemcpy,                      aclError,    (void* dst, std::size_t destMax, const void* src, std::size_t count, aclrtMemcpyKind kind), required, "8.0") \
  X(aclrtMemset,                      aclError,    (void* devPtr, std::size_t maxCount, std::int32_t value, std::size_t count), required, "8.0") \
  X(aclrtDeviceGetBareTgid,           aclError,    (std::int32_t* pid),                                    optional, "8.2.RC1") \
  X(aclrtIpcMemGetExportKey,          aclError,    (void* devPtr, std::size_t size, char* key, std::size_t len, std::uint64_t flags), optional, "8.2.RC1") \
  X(aclrtIpcMemSetImportPid,          aclError,    (const char* key, std::int32_t* pid, std::size_t num),  optional, "8.2.RC1") \
  X(aclrtIpcMemImportByKey,           aclError,    (void** devPtr, const char* key, std::uint64_t flags),  optional, "8.2.RC1") \
  X(aclrtIpcMemClose,                 aclError,    (const char* key),                                      optional, "8.2.RC1") \
  X(aclrtIpcMemSetAttr,               aclError,    (const char* key, aclrtIpcMemAttrType type, std::uint64_t attr), optional, "8.5.0") \
  X(aclrtIpcMemImportPidInterServer,  aclError,    (const char* key, aclrtServerPid* serverPids, std::size_t num), optional, "8.5.0")
// clang-format on
