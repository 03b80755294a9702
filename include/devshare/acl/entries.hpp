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
#include <devshare/acl/vmm_types.hpp>

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
  X(aclrtMemcpy2d,                    aclError,    (void* dst, std::size_t dpitch, const void* src, std::size_t spitch, std::size_t width, std::size_t height, aclrtMemcpyKind kind), optional, "8.0") \
  X(aclrtDeviceGetBareTgid,           aclError,    (std::int32_t* pid),                                    optional, "8.2.RC1") \
  X(aclrtIpcMemGetExportKey,          aclError,    (void* devPtr, std::size_t size, char* key, std::size_t len, std::uint64_t flags), optional, "8.2.RC1") \
  X(aclrtIpcMemSetImportPid,          aclError,    (const char* key, std::int32_t* pid, std::size_t num),  optional, "8.2.RC1") \
  X(aclrtIpcMemImportByKey,           aclError,    (void** devPtr, const char* key, std::uint64_t flags),  optional, "8.2.RC1") \
  X(aclrtIpcMemClose,                 aclError,    (const char* key),                                      optional, "8.2.RC1") \
  X(aclrtIpcMemSetAttr,               aclError,    (const char* key, aclrtIpcMemAttrType type, std::uint64_t attr), optional, "8.5.0") \
  X(aclrtIpcMemImportPidInterServer,  aclError,    (const char* key, aclrtServerPid* serverPids, std::size_t num), optional, "8.5.0") \
  X(aclrtMallocPhysical,              aclError,    (aclrtDrvMemHandle* handle, std::size_t size, const aclrtPhysicalMemProp* prop, std::uint64_t flags), optional, "8.0") \
  X(aclrtFreePhysical,                aclError,    (aclrtDrvMemHandle handle),                             optional, "8.0")     \
  X(aclrtMemGetAllocationGranularity, aclError,    (aclrtPhysicalMemProp* prop, aclrtMemGranularityOptions option, std::size_t* granularity), optional, "8.0") \
  X(aclrtMemRetainAllocationHandle,   aclError,    (void* virPtr, aclrtDrvMemHandle* handle),              optional, "8.5.0")   \
  X(aclrtMemGetAllocationPropertiesFromHandle, aclError, (aclrtDrvMemHandle handle, aclrtPhysicalMemProp* prop), optional, "8.5.0") \
  X(aclrtReserveMemAddress,           aclError,    (void** virPtr, std::size_t size, std::size_t alignment, void* expectPtr, std::uint64_t flags), optional, "8.0") \
  X(aclrtReserveMemAddressNoUCMemory, aclError,    (void** virPtr, std::size_t size, std::size_t alignment, void* expectPtr, std::uint64_t flags), optional, "9.0.0") \
  X(aclrtReleaseMemAddress,           aclError,    (void* virPtr),                                         optional, "8.0")     \
  X(aclrtMapMem,                      aclError,    (void* virPtr, std::size_t size, std::size_t offset, aclrtDrvMemHandle handle, std::uint64_t flags), optional, "8.0") \
  X(aclrtMemMapNoAccess,              aclError,    (void* virPtr, std::size_t size, std::size_t offset, aclrtDrvMemHandle handle, std::uint64_t flags), optional, "after 9.1.0") \
  X(aclrtUnmapMem,                    aclError,    (void* virPtr),                                         optional, "8.0")     \
  X(aclrtMemSetAccess,                aclError,    (void* virPtr, std::size_t size, aclrtMemAccessDesc* desc, std::size_t count), optional, "8.5.0") \
  X(aclrtMemGetAccess,                aclError,    (void* virPtr, aclrtMemLocation* location, std::uint64_t* flag), optional, "8.5.0") \
  X(aclrtMemGetAddressRange,          aclError,    (void* ptr, void** pbase, std::size_t* psize),          optional, "9.0.0")   \
  X(aclrtPointerGetAttributes,        aclError,    (const void* ptr, aclrtPtrAttributes* attributes),      optional, "8.5.0")   \
  X(aclrtMemExportToShareableHandle,  aclError,    (aclrtDrvMemHandle handle, aclrtMemHandleType handleType, std::uint64_t flags, std::uint64_t* shareableHandle), optional, "8.0") \
  X(aclrtMemSetPidToShareableHandle,  aclError,    (std::uint64_t shareableHandle, std::int32_t* pid, std::size_t pidNum), optional, "8.0") \
  X(aclrtMemImportFromShareableHandle, aclError,   (std::uint64_t shareableHandle, std::int32_t deviceId, aclrtDrvMemHandle* handle), optional, "8.0") \
  X(aclrtMemExportToShareableHandleV2, aclError,   (aclrtDrvMemHandle handle, std::uint64_t flags, aclrtMemSharedHandleType shareType, void* shareableHandle), optional, "8.5.0") \
  X(aclrtMemSetPidToShareableHandleV2, aclError,   (void* shareableHandle, aclrtMemSharedHandleType shareType, std::int32_t* pid, std::size_t pidNum), optional, "8.5.0") \
  X(aclrtMemImportFromShareableHandleV2, aclError, (void* shareableHandle, aclrtMemSharedHandleType shareType, std::uint64_t flags, aclrtDrvMemHandle* handle), optional, "8.5.0") \
  X(aclrtCreateStream,                aclError,    (aclrtStream* stream),                                  optional, "8.0")     \
  X(aclrtCreateStreamWithConfig,      aclError,    (aclrtStream* stream, std::uint32_t priority, std::uint32_t flag), optional, "8.0") \
  X(aclrtDestroyStream,               aclError,    (aclrtStream stream),                                   optional, "8.0")     \
  X(aclrtDestroyStreamForce,          aclError,    (aclrtStream stream),                                   optional, "8.0")     \
  X(aclrtStreamQuery,                 aclError,    (aclrtStream stream, aclrtStreamStatus* status),        optional, "8.0")     \
  X(aclrtSynchronizeStream,           aclError,    (aclrtStream stream),                                   optional, "8.0")     \
  X(aclrtSynchronizeStreamWithTimeout, aclError,   (aclrtStream stream, std::int32_t timeout),             optional, "8.0")     \
  X(aclrtSynchronizeDevice,           aclError,    (),                                                     optional, "8.0")     \
  X(aclrtMemcpyAsync,                 aclError,    (void* dst, std::size_t destMax, const void* src, std::size_t count, aclrtMemcpyKind kind, aclrtStream stream), optional, "8.0") \
  X(aclrtMemcpy2dAsync,               aclError,    (void* dst, std::size_t dpitch, const void* src, std::size_t spitch, std::size_t width, std::size_t height, aclrtMemcpyKind kind, aclrtStream stream), optional, "8.0") \
  X(aclrtMemsetAsync,                 aclError,    (void* devPtr, std::size_t maxCount, std::int32_t value, std::size_t count, aclrtStream stream), optional, "8.0") \
  X(aclrtCreateEvent,                 aclError,    (aclrtEvent* event),                                    optional, "8.0")     \
  X(aclrtCreateEventWithFlag,         aclError,    (aclrtEvent* event, std::uint32_t flag),                optional, "8.0")     \
  X(aclrtCreateEventExWithFlag,       aclError,    (aclrtEvent* event, std::uint32_t flag),                optional, "8.0")     \
  X(aclrtDestroyEvent,                aclError,    (aclrtEvent event),                                     optional, "8.0")     \
  X(aclrtRecordEvent,                 aclError,    (aclrtEvent event, aclrtStream stream),                 optional, "8.0")     \
  X(aclrtResetEvent,                  aclError,    (aclrtEvent event, aclrtStream stream),                 optional, "8.0")     \
  X(aclrtQueryEventStatus,            aclError,    (aclrtEvent event, aclrtEventRecordedStatus* status),   optional, "8.0")     \
  X(aclrtStreamWaitEvent,             aclError,    (aclrtStream stream, aclrtEvent event),                 optional, "8.0")     \
  X(aclrtSynchronizeEvent,            aclError,    (aclrtEvent event),                                     optional, "8.0")     \
  X(aclrtSynchronizeEventWithTimeout, aclError,    (aclrtEvent event, std::int32_t timeout),               optional, "8.0")     \
  X(aclrtEventElapsedTime,            aclError,    (float* ms, aclrtEvent startEvent, aclrtEvent endEvent), optional, "8.0")    \
  X(aclrtIpcGetEventHandle,           aclError,    (aclrtEvent event, aclrtIpcEventHandle* handle),        optional, "8.5.0")   \
  X(aclrtIpcOpenEventHandle,          aclError,    (aclrtIpcEventHandle handle, aclrtEvent* event),        optional, "8.5.0")   \
  X(aclrtCreateNotify,                aclError,    (aclrtNotify* notify, std::uint64_t flag),              optional, "8.2.RC1") \
  X(aclrtDestroyNotify,               aclError,    (aclrtNotify notify),                                   optional, "8.2.RC1") \
  X(aclrtRecordNotify,                aclError,    (aclrtNotify notify, aclrtStream stream),               optional, "8.2.RC1") \
  X(aclrtWaitAndResetNotify,          aclError,    (aclrtNotify notify, aclrtStream stream, std::uint32_t timeout), optional, "8.2.RC1") \
  X(aclrtGetNotifyId,                 aclError,    (aclrtNotify notify, std::uint32_t* notifyId),          optional, "8.2.RC1") \
  X(aclrtNotifyBatchReset,            aclError,    (aclrtNotify* notifies, std::size_t num),               optional, "8.5.0")   \
  X(aclrtNotifyGetExportKey,          aclError,    (aclrtNotify notify, char* key, std::size_t len, std::uint64_t flags), optional, "8.2.RC1") \
  X(aclrtNotifySetImportPid,          aclError,    (aclrtNotify notify, std::int32_t* pid, std::size_t num), optional, "8.2.RC1") \
  X(aclrtNotifySetImportPidInterServer, aclError,  (aclrtNotify notify, aclrtServerPid* serverPids, std::size_t num), optional, "8.5.0") \
  X(aclrtNotifyImportByKey,           aclError,    (aclrtNotify* notify, const char* key, std::uint64_t flags), optional, "8.2.RC1") \
  X(aclrtValueWrite,                  aclError,    (void* devAddr, std::uint64_t value, std::uint32_t flag, aclrtStream stream), optional, "8.5.0") \
  X(aclrtValueWait,                   aclError,    (void* devAddr, std::uint64_t value, std::uint32_t flag, aclrtStream stream), optional, "8.5.0") \
  X(aclrtMemP2PMap,                   aclError,    (void* devPtr, std::size_t size, std::int32_t dstDevId, std::uint64_t flags), optional, "9.0.0") \
  X(aclrtHostRegister,                aclError,    (void* ptr, std::uint64_t size, aclrtHostRegisterType type, void** devPtr), optional, "8.0") \
  X(aclrtHostRegisterV2,              aclError,    (void* ptr, std::uint64_t size, std::uint32_t flag),    optional, "8.5.0")   \
  X(aclrtHostGetDevicePointer,        aclError,    (void* pHost, void** pDevice, std::uint32_t flag),      optional, "8.5.0")   \
  X(aclrtHostUnregister,              aclError,    (void* ptr),                                            optional, "8.0")
// clang-format on
