// SPDX-License-Identifier: Apache-2.0
// A library of the shape of the vendor's libascendcl.so, for tests of how one is found and used: the same entry points,
// by a few lines each. Memory is the host's, there is one address space and one process, and every call is counted.
//
// FAKE_ONLY_REQUIRED leaves out every optional entry, FAKE_WITHOUT_MEMCPY a required one. The environment says the
// rest: DEVSHARE_TEST_FAKE_DEVICES, how many devices there are (1).
#include <devshare/acl/codes.hpp>
#include <devshare/acl/entries.hpp>
#include <devshare/acl/table.hpp>

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <string>

using namespace devshare::acl;

extern "C" {
#define FAKE_DECLARE(name, result, parameters, need, since) __attribute__((visibility("default"))) result name parameters;
DEVSHARE_ACL_ENTRIES(FAKE_DECLARE)
#undef FAKE_DECLARE

// How often the entry of that name was called.
__attribute__((visibility("default"))) unsigned fake_ascendcl_calls(const char* entry);
}

namespace {

constexpr const char* entry_names[] = {
#define FAKE_NAME(name, result, parameters, need, since) #name,
    DEVSHARE_ACL_ENTRIES(FAKE_NAME)
#undef FAKE_NAME
};
std::atomic<unsigned> calls[entry_count];

void count(Entry entry) { calls[static_cast<std::size_t>(entry)].fetch_add(1); }

struct Key {
  void* address;
  bool validated;
};

std::mutex mutex;
std::map<void*, std::size_t> blocks;
std::map<std::string, Key> keys;
std::atomic<bool> initialised;
thread_local std::int32_t current = -1;
int contexts[16];

std::uint32_t devices() {
  const char* count = std::getenv("DEVSHARE_TEST_FAKE_DEVICES");
  return count == nullptr ? 1 : static_cast<std::uint32_t>(std::atoi(count));
}

aclError set_device(std::int32_t device) {
  if (device < 0 || static_cast<std::uint32_t>(device) >= devices()) return code::rt_invalid_deviceid;
  current = device;
  return 0;
}

}  // namespace

unsigned fake_ascendcl_calls(const char* entry) {
  for (std::size_t i = 0; i < entry_count; ++i) {
    if (std::strcmp(entry_names[i], entry) == 0) return calls[i].load();
  }
  return 0;
}

aclError aclInit(const char*) {
  count(Entry::aclInit);
  return initialised.exchange(true) ? code::repeat_initialize : 0;
}

aclError aclFinalize() {
  count(Entry::aclFinalize);
  return initialised.exchange(false) ? 0 : code::repeat_finalize;
}

aclError aclrtGetDeviceCount(std::uint32_t* number) {
  count(Entry::aclrtGetDeviceCount);
  *number = devices();
  return 0;
}

aclError aclrtSetDevice(std::int32_t device) {
  count(Entry::aclrtSetDevice);
  return set_device(device);
}

aclError aclrtResetDevice(std::int32_t device) {
  count(Entry::aclrtResetDevice);
  if (current == device) current = -1;
  return 0;
}

aclError aclrtGetDevice(std::int32_t* device) {
  count(Entry::aclrtGetDevice);
  *device = current;
  return current < 0 ? code::rt_context_null : 0;
}

aclError aclrtSetCurrentContext(aclrtContext context) {
  count(Entry::aclrtSetCurrentContext);
  return set_device(static_cast<std::int32_t>(static_cast<int*>(context) - contexts));
}

aclError aclrtGetCurrentContext(aclrtContext* context) {
  count(Entry::aclrtGetCurrentContext);
  if (current < 0) return code::rt_context_null;
  *context = &contexts[current];
  return 0;
}

aclError aclrtDeviceCanAccessPeer(std::int32_t* can, std::int32_t, std::int32_t) {
  count(Entry::aclrtDeviceCanAccessPeer);
  *can = 1;
  return 0;
}

aclError aclrtDeviceEnablePeerAccess(std::int32_t, std::uint32_t) {
  count(Entry::aclrtDeviceEnablePeerAccess);
  return 0;
}

aclError aclrtDeviceDisablePeerAccess(std::int32_t) {
  count(Entry::aclrtDeviceDisablePeerAccess);
  return 0;
}

aclError aclrtMalloc(void** address, std::size_t size, aclrtMemMallocPolicy) {
  count(Entry::aclrtMalloc);
  if (current < 0) return code::rt_context_null;
  if (size == 0) return code::invalid_param;
  constexpr std::size_t page = 4096;
  *address = std::aligned_alloc(page, (size + page - 1) / page * page);
  if (*address == nullptr) return code::rt_memory_allocation;
  const std::lock_guard lock(mutex);
  blocks[*address] = size;
  return 0;
}

aclError aclrtFree(void* address) {
  count(Entry::aclrtFree);
  const std::lock_guard lock(mutex);
  if (blocks.erase(address) == 0) return code::rt_param_invalid;
  std::free(address);
  return 0;
}

#ifndef FAKE_WITHOUT_MEMCPY
aclError aclrtMemcpy(void* to, std::size_t room, const void* from, std::size_t size, aclrtMemcpyKind) {
  count(Entry::aclrtMemcpy);
  if (size > room) return code::rt_param_invalid;
  std::memcpy(to, from, size);
  return 0;
}
#endif

aclError aclrtMemset(void* address, std::size_t room, std::int32_t value, std::size_t size) {
  count(Entry::aclrtMemset);
  if (size > room) return code::rt_param_invalid;
  std::memset(address, value, size);
  return 0;
}

#ifndef FAKE_ONLY_REQUIRED

const char* aclGetRecentErrMsg() {
  count(Entry::aclGetRecentErrMsg);
  return "the fake library has nothing to say";
}

aclError aclrtGetVersion(std::int32_t* major, std::int32_t* minor, std::int32_t* patch) {
  count(Entry::aclrtGetVersion);
  *major = 1;
  *minor = 17;
  *patch = 0;
  return 0;
}

const char* aclrtGetSocName() {
  count(Entry::aclrtGetSocName);
  return "FakeSoc";
}

aclError aclrtDeviceGetBareTgid(std::int32_t* pid) {
  count(Entry::aclrtDeviceGetBareTgid);
  *pid = ::getpid();
  return 0;
}

aclError aclrtIpcMemGetExportKey(void* address, std::size_t, char* key, std::size_t length, std::uint64_t flags) {
  count(Entry::aclrtIpcMemGetExportKey);
  const std::lock_guard lock(mutex);
  if (length < ipc_key_size) return code::rt_param_invalid;
  if (blocks.count(address) == 0) return code::rt_drv_internal;
  static unsigned number = 0;
  std::memset(key, 0, length);
  std::snprintf(key, length, "%064u", ++number);
  keys[key] = {address, flags == ipc_export::listed};
  return 0;
}

aclError aclrtIpcMemSetImportPid(const char* key, std::int32_t*, std::size_t number) {
  count(Entry::aclrtIpcMemSetImportPid);
  const std::lock_guard lock(mutex);
  if (number == 0 || number > max_import_pids_per_call) return code::rt_param_invalid;
  const auto found = keys.find(key);
  if (found == keys.end()) return code::rt_drv_internal;
  return found->second.validated ? 0 : code::rt_no_permission;
}

aclError aclrtIpcMemImportByKey(void** address, const char* key, std::uint64_t) {
  count(Entry::aclrtIpcMemImportByKey);
  const std::lock_guard lock(mutex);
  const auto found = keys.find(key);
  if (found == keys.end() || found->second.validated) return code::rt_drv_internal;  // this process was not admitted
  *address = found->second.address;
  return 0;
}

aclError aclrtIpcMemClose(const char* key) {
  count(Entry::aclrtIpcMemClose);
  const std::lock_guard lock(mutex);
  return keys.erase(key) == 1 ? 0 : code::rt_drv_internal;
}

#endif
