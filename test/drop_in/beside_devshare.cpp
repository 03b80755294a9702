// SPDX-License-Identifier: Apache-2.0
// A program that calls ACL by itself and uses devshare too: one runtime, in which each sees what the other made.
#include <acl/acl.h>

#include <devshare/devshare.hpp>
#include <devshare/format.hpp>
#include <devshare/host.hpp>

#include <sys/wait.h>
#include <unistd.h>

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

bool well(const Result<void>& met) {
  if (!met) fmt::print(stderr, "{:l}\n", met.error());
  return bool(met);
}

}  // namespace

int main() {
  // In a process of its own: what there is, devshare looks once.
  const pid_t child = ::fork();
  if (child == 0) ::_exit(well(meet_in_an_older_one()) ? 0 : 1);
  int status = -1;
  ::waitpid(child, &status, 0);
  const bool good = status == 0 && well(meet());
  std::puts(good ? "ok" : "failed");
  return good ? 0 : 1;
}
