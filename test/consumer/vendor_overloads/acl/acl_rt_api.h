/* SPDX-License-Identifier: Apache-2.0 */
/* What the vendor's headers have for C++: overloads and templates with the names of the C functions, so that the address of one is ambiguous. */
#ifndef STAND_IN_ACL_RT_API_H
#define STAND_IN_ACL_RT_API_H

#include <acl/acl_rt.h>

template <typename T>
aclError aclrtMalloc(T **devPtr, size_t size, aclrtMallocConfig *config) {
  (void)config;
  return aclrtMalloc(reinterpret_cast<void **>(devPtr), size, ACL_MEM_MALLOC_HUGE_FIRST);
}
template <typename T>
aclError aclrtMallocHost(T **hostPtr, size_t size, aclrtMallocConfig *config) {
  (void)config;
  return aclrtMallocHost(reinterpret_cast<void **>(hostPtr), size);
}
inline aclError aclrtMemset(void *devPtr, int32_t value, size_t count) {
  return aclrtMemset(devPtr, count, value, count);
}

#endif
