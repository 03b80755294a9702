// SPDX-License-Identifier: Apache-2.0
// An ACL library whose calls do nothing: what is left of a wrapped call over it is the wrapper. Loaded with
// DEVSHARE_RUNTIME=<path>.
#include <devshare/acl/entries.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>

using namespace devshare::acl;

extern "C" {

// What the calls that a wrapper makes for its user return, until it is set otherwise.
__attribute__((visibility("default"))) std::int32_t empty_acl_answer = 0;

#define EMPTY_ACL __attribute__((visibility("default"))) aclError

EMPTY_ACL aclInit(const char*) { return 0; }
EMPTY_ACL aclFinalize() { return 0; }
EMPTY_ACL aclrtGetDeviceCount(std::uint32_t* count) { return *count = 1, 0; }
EMPTY_ACL aclrtSetDevice(std::int32_t) { return 0; }
EMPTY_ACL aclrtResetDevice(std::int32_t) { return 0; }
EMPTY_ACL aclrtGetDevice(std::int32_t* device) { return *device = 0, 0; }
EMPTY_ACL aclrtSetCurrentContext(aclrtContext) { return 0; }
EMPTY_ACL aclrtGetCurrentContext(aclrtContext* context) { return *context = &empty_acl_answer, 0; }
EMPTY_ACL aclrtDeviceCanAccessPeer(std::int32_t* can, std::int32_t, std::int32_t) { return *can = 1, 0; }
EMPTY_ACL aclrtDeviceEnablePeerAccess(std::int32_t, std::uint32_t) { return 0; }
EMPTY_ACL aclrtDeviceDisablePeerAccess(std::int32_t) { return 0; }

EMPTY_ACL aclrtMalloc(void** address, std::size_t, aclrtMemMallocPolicy) {
  *address = reinterpret_cast<void*>(0x110000000000);
  return empty_acl_answer;
}
EMPTY_ACL aclrtFree(void*) { return empty_acl_answer; }
EMPTY_ACL aclrtMemcpy(void*, std::size_t, const void*, std::size_t, aclrtMemcpyKind) { return empty_acl_answer; }
EMPTY_ACL aclrtMemset(void*, std::size_t, std::int32_t, std::size_t) { return empty_acl_answer; }
EMPTY_ACL aclrtDeviceGetBareTgid(std::int32_t* pid) { return *pid = 7, empty_acl_answer; }
EMPTY_ACL aclrtIpcMemGetExportKey(void*, std::size_t, char* key, std::size_t length, std::uint64_t) {
  std::memset(key, 'k', length - 1);
  key[length - 1] = '\0';
  return empty_acl_answer;
}
EMPTY_ACL aclrtIpcMemSetImportPid(const char*, std::int32_t*, std::size_t) { return empty_acl_answer; }
EMPTY_ACL aclrtIpcMemImportByKey(void** address, const char*, std::uint64_t) {
  *address = reinterpret_cast<void*>(0x120000000000);
  return empty_acl_answer;
}
EMPTY_ACL aclrtIpcMemClose(const char*) { return empty_acl_answer; }

}  // extern "C"
