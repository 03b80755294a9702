/* SPDX-License-Identifier: Apache-2.0 */
/* A stand-in for the vendor's headers, of our own writing: the names, kinds and values that the ACL interface documents,
 * as far as they could meet ours. Error codes are macros in one header and constants in another, enums are plain C,
 * functions are extern "C", and C++ adds overloads and templates of the same names. */
#ifndef STAND_IN_ACL_H
#define STAND_IN_ACL_H

#include "acl_base.h"
#include "acl_rt.h"

#define ACL_MAJOR_VERSION 1
#define ACL_MINOR_VERSION 17
#define ACL_PATCH_VERSION 0

#ifdef __cplusplus
extern "C" {
#endif

ACL_FUNC_VISIBILITY aclError aclInit(const char *configPath);
ACL_FUNC_VISIBILITY aclError aclFinalize(void);
ACL_FUNC_VISIBILITY aclError aclFinalizeReference(uint64_t *refCount);
ACL_FUNC_VISIBILITY aclError aclrtGetVersion(int32_t *majorVersion, int32_t *minorVersion, int32_t *patchVersion);
ACL_FUNC_VISIBILITY const char *aclGetRecentErrMsg(void);

#ifdef __cplusplus
}
#endif
#endif
