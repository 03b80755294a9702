// SPDX-License-Identifier: Apache-2.0
// Calls of ACL that programs which share memory make, and that the host runtime does not have: they say so, by their name,
// instead of keeping the program from being linked.
#include "drop_in.hpp"

#include "../core/drop_in.hpp"

// X(name): whatever its parameters are, it looks at none of them.
#define DEVSHARE_NOT_IMPLEMENTED(X)  \
  X(aclrtMallocWithCfg)              \
  X(aclrtMallocCached)               \
  X(aclrtMallocAlign32)              \
  X(aclrtMallocHostWithCfg)          \
  X(aclrtMemFlush)                   \
  X(aclrtMemInvalidate)              \
  X(aclrtMemcpyAsyncWithCondition)   \
  X(aclrtGetDevicesTopo)             \
  X(aclrtHostMemMapCapabilities)     \
  X(aclrtMemMapSetLink)              \
  X(aclrtMemMapSelectedLink)         \
  X(aclrtGetRunMode)                 \
  X(aclrtSetTsDevice)                \
  X(aclrtGetDeviceUtilizationRate)   \
  X(aclrtQueryDeviceStatus)          \
  X(aclrtEventGetTimestamp)          \
  X(aclrtGetEventId)                 \
  X(aclrtGetStreamAvailableNum)      \
  X(aclrtSetStreamFailureMode)       \
  X(aclrtStreamAbort)                \
  X(aclrtActiveStream)               \
  X(aclrtSubscribeReport)            \
  X(aclrtUnSubscribeReport)          \
  X(aclrtProcessReport)              \
  X(aclrtLaunchCallback)             \
  X(aclrtSetExceptionInfoCallback)   \
  X(aclrtLaunchKernel)               \
  X(aclrtBinaryLoad)                 \
  X(aclrtBinaryUnLoad)               \
  X(aclrtBinaryGetFunction)          \
  X(aclrtSetOpWaitTimeout)           \
  X(aclrtSetOpExecuteTimeOut)

extern "C" {
#define DEVSHARE_SAY_SO(name) \
  DEVSHARE_DROP_IN devshare::acl::aclError name() { return devshare::detail::not_implemented(#name); }
DEVSHARE_NOT_IMPLEMENTED(DEVSHARE_SAY_SO)
#undef DEVSHARE_SAY_SO
}
