/* SPDX-License-Identifier: Apache-2.0 */
/* The interface of Ascend's ACL runtime as far as sharing memory and its tests need it, of our own writing, for C and C++.
 * docs/drop-in.md says what is there. */
#ifndef DEVSHARE_DROP_IN_ACL_H
#define DEVSHARE_DROP_IN_ACL_H

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
ACL_FUNC_VISIBILITY const char *aclGetRecentErrMsg(void);
ACL_FUNC_VISIBILITY aclError aclrtGetVersion(int32_t *major, int32_t *minor, int32_t *patch);

#ifdef __cplusplus
}
#endif
#endif
