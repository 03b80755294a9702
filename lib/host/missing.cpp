// SPDX-License-Identifier: Apache-2.0
// Weak definitions of what is not built yet: the key path's sockets.
#include "calls.hpp"
#include "failure.hpp"
#include "exports.hpp"
#include "fork.hpp"
#include "imports.hpp"
#define WEAK __attribute__((weak))
#pragma GCC diagnostic ignored "-Wunused-parameter"
namespace devshare::host {
namespace calls {
WEAK acl::aclError aclrtDeviceGetBareTgid(std::int32_t*) { return acl::code::feature_unsupported; }
WEAK acl::aclError aclrtIpcMemGetExportKey(void*, std::size_t, char*, std::size_t, std::uint64_t) { return acl::code::feature_unsupported; }
WEAK acl::aclError aclrtIpcMemSetImportPid(const char*, std::int32_t*, std::size_t) { return acl::code::feature_unsupported; }
WEAK acl::aclError aclrtIpcMemImportByKey(void**, const char*, std::uint64_t) { return acl::code::feature_unsupported; }
WEAK acl::aclError aclrtIpcMemClose(const char*) { return acl::code::feature_unsupported; }
WEAK acl::aclError aclrtIpcMemSetAttr(const char*, acl::aclrtIpcMemAttrType, std::uint64_t) { return acl::code::feature_unsupported; }
WEAK acl::aclError aclrtIpcMemImportPidInterServer(const char*, acl::aclrtServerPid*, std::size_t) { return acl::code::feature_unsupported; }
}
#define F(n) WEAK void n##_before_fork() {} WEAK void n##_after_fork_in_parent() {} WEAK void n##_after_fork_in_child() {}
F(exports) F(imports) F(client) F(server)
WEAK void exports_block_freed(std::uint64_t) {}
WEAK void exports_shut_down() {}
WEAK void imports_shut_down() {}
WEAK ExportCounters export_counters() { return {}; }
WEAK ImportCounters import_counters() { return {}; }
}
