// SPDX-License-Identifier: Apache-2.0
// A program that calls ACL by itself and uses devshare too: one runtime, in which each sees what the other made.
#include <acl/acl.h>

#include <devshare/devshare.hpp>
#include <devshare/format.hpp>
#include <devshare/host.hpp>

#include <cstdio>

using namespace devshare;

namespace {

Result<void> meet() {
  DEVSHARE_TRY(runtime, Runtime::open());
  DEVSHARE_TRY(device, runtime.device(DeviceId{0}));
  if (runtime.name() != "host") return Error(Errc::refused, Operation::open_runtime);
  void* block = nullptr;
  if (::aclrtSetDevice(0) != 0 || ::aclrtMalloc(&block, 4096, ACL_MEM_MALLOC_HUGE_FIRST) != 0) {
    return Error(Errc::refused, Operation::allocate);
  }
  if (host::counters().allocations != 1) return Error(Errc::refused, Operation::allocate);
  const DeviceSpan<std::byte> bytes{DevicePtr<std::byte>::from_address(block), 4096};
  DEVSHARE_TRY(seen, host::view(bytes));
  seen[0] = std::byte{7};
  DEVSHARE_TRY(key, export_key(UnownedMemory::promise_outlives(device, bytes)));
  DEVSHARE_TRY(back, std::move(key).close());
  unsigned char byte = 0;
  if (::aclrtMemcpy(&byte, 1, back.bytes().data().address(), 1, ACL_MEMCPY_DEVICE_TO_HOST) != 0 || byte != 7) {
    return Error(Errc::refused, Operation::copy_to_host);
  }
  if (::aclrtFree(block) != 0) return Error(Errc::refused, Operation::free_memory);
  return runtime.finalize();
}

// An older CANN is one to both: what devshare cannot find, a call of the program's own does not get either.
Result<void> meet_in_an_older_one() {
  if (!host::set("INTERFACE", "8.0")) return Error(Errc::refused, Operation::open_runtime);
  DEVSHARE_TRY(runtime, Runtime::open());
  int32_t pid = 0;
  if (runtime.has(acl::Entry::aclrtDeviceGetBareTgid) ||
      ::aclrtDeviceGetBareTgid(&pid) != ACL_ERROR_RT_FEATURE_NOT_SUPPORT) {
    return Error(Errc::refused, Operation::bare_pid);
  }
  return runtime.finalize();
}

Result<void> meet_twice() {
  if (auto met = meet(); !met) return met;
  return meet_in_an_older_one();
}

}  // namespace

int main() {
  const auto met = meet_twice();
  if (!met) fmt::print(stderr, "{:l}\n", met.error());
  std::puts(met ? "ok" : "failed");
  return met ? 0 : 1;
}
