// SPDX-License-Identifier: Apache-2.0
// Weak definitions of the calls that have no body yet.
#include "calls.hpp"
#include "fork.hpp"
#include "exports.hpp"
#include "imports.hpp"
#include "block.hpp"
#include "ledger.hpp"
#include "device.hpp"
#include "profile.hpp"
#include "instrument.hpp"
#include "host_runtime.hpp"
#define WEAK __attribute__((weak))
namespace devshare::host {
namespace calls {
#define W(name, result, parameters, need, since) WEAK result name parameters { return {}; }
#pragma GCC diagnostic ignored "-Wunused-parameter"
DEVSHARE_ACL_ENTRIES(W)
#undef W
}
#define F(n) WEAK void n##_before_fork() {} WEAK void n##_after_fork_in_parent() {} WEAK void n##_after_fork_in_child() {}
F(devices) F(blocks) F(exports) F(imports) F(client) F(server) F(ledger) F(instrument)
WEAK void exports_block_freed(std::uint64_t) {}
WEAK void exports_shut_down() {}
WEAK void imports_shut_down() {}
WEAK ExportCounters export_counters() { return {}; }
WEAK ImportCounters import_counters() { return {}; }
WEAK void ledger_shut_down() {}
WEAK acl::aclError ledger_claim(std::int32_t, std::uint64_t) { return 0; }
WEAK void ledger_commit(std::int32_t, std::uint64_t) {}
WEAK void ledger_take_back(std::int32_t, std::uint64_t) {}
WEAK void ledger_release(std::int32_t, std::uint64_t) {}
WEAK std::uint64_t ledger_bytes_in_use(std::int32_t) { return 0; }
WEAK const acl::Table& table() noexcept { static const acl::Table t; return t; }
}
