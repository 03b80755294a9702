// SPDX-License-Identifier: Apache-2.0
// R1 to R5: devices and contexts, the beginning and the end, forked children, work that is still in a stream.
#include "expect.hpp"

#include <sys/wait.h>
#include <unistd.h>

using namespace conformance;
namespace code = acl::code;

namespace {

constexpr auto malloc_in_child = [](const acl::Table& acl) {
  int ends[2];
  aclError code = absent;
  if (::pipe(ends) != 0) return code;
  const pid_t child = ::fork();
  if (child == 0) {
    void* memory = nullptr;
    code = acl.aclrtMalloc(&memory, piece, acl::malloc_policy::huge_first);
    ::_exit(::write(ends[1], &code, sizeof(code)) == sizeof(code) ? 0 : 1);
  }
  ::close(ends[1]);
  if (::read(ends[0], &code, sizeof(code)) != sizeof(code)) code = 0;  // it crashed: no refusal
  ::close(ends[0]);
  ::waitpid(child, nullptr, 0);
  return code;
};

}  // namespace

TEST_CASE("R1: a call needs a current device on its thread") {
  Acl a(Start{.device = false});
  CODE("aclrtGetDeviceCount without a device", a.run([](const acl::Table& acl) {
    std::uint32_t count = 0;
    return acl.aclrtGetDeviceCount(&count);
  }),
       0);
  CODE("aclrtDeviceGetBareTgid without a device", a.run([](const acl::Table& acl) {
    std::int32_t pid = 0;
    return acl.aclrtDeviceGetBareTgid(&pid);
  }),
       0);
  CODE("aclrtGetDevice without a device", a.run([](const acl::Table& acl) {
    std::int32_t device = 0;
    return acl.aclrtGetDevice(&device);
  }),
       code::rt_context_null);
  CODE("aclrtMalloc without a device", a.allocate().code, code::rt_context_null);
  CODE("aclrtIpcMemImportByKey without a device", a.import_key(Key{"key"}).code, code::rt_context_null);
  CODE("aclrtSetDevice of a device that is not there", a.set_device(4711), code::rt_invalid_deviceid);
  CODE("aclrtSetDevice", a.set_device(0), 0);
  CODE("aclrtMalloc with a device", a.allocate().code, 0);
}

TEST_CASE("R2: aclInit may be called again, aclFinalize once") {
  Acl a(Start{.initialised = false});
  constexpr auto init = [](const acl::Table& acl) { return acl.aclInit(nullptr); };
  constexpr auto finalize = [](const acl::Table& acl) { return acl.aclFinalize(); };
  CODE("the first aclInit", a.run(init), 0);
  CODE("the second aclInit", a.run(init), code::repeat_initialize);
  CODE("the first aclFinalize", a.run(finalize), 0);
  CODE("the second aclFinalize", a.run(finalize), code::repeat_finalize);
  CODE("aclInit after that", a.run(init), 0);
}

TEST_CASE("R3: each aclrtSetDevice wants one aclrtResetDevice") {
  Acl a;
  void* const memory = a.allocate().value;
  CODE("aclrtSetDevice for the second time", a.set_device(0), 0);
  CODE("aclrtResetDevice for the first", a.reset_device(0), 0);
  CODE("aclrtSetDevice, for a thread that has left the device", a.set_device(0), 0);
  CODE("a copy to memory of before, since one was always set", a.put(memory, 'm'), 0);
  CODE("aclrtResetDevice for the second", a.reset_device(0), 0);
  CODE("aclrtResetDevice for the third", a.reset_device(0), 0);
  CODE("aclrtResetDevice once too often", a.reset_device(0), code::rt_context_release);
  CODE("aclrtSetDevice, once", a.set_device(0), 0);
  CODE("aclrtSetDevice, twice", a.set_device(0), 0);
  CODE("aclrtResetDeviceForce, once", a.run([](const acl::Table& acl) { return acl.aclrtResetDeviceForce(0); }), 0);
  CODE("aclrtResetDevice after that", a.reset_device(0), code::rt_context_release);
}

TEST_CASE("R4: a forked child does not use its parent's ACL") {
  if (!is_ours()) CONFORMANCE_SKIP("what happens is not defined");
  Acl a;
  CODE("aclrtMalloc in a forked child", a.run(malloc_in_child), code::rt_context_null);
  CODE("aclrtMalloc in its parent", a.allocate().code, 0);
}

TEST_CASE("R5: work in a stream is waited for before its memory goes") {
  Acl a;
  Acl b;
  const Handle handle = a.physical().value;
  void* const range = a.reserve().value;
  CODE("aclrtMapMem", a.map(range, handle), 0);
  void* const stream = a.stream();
  const Got<void*> notify = a.notify();
  const Key key = a.export_notify(notify.value, acl::notify_export::disable_pid_validation).value;
  CODE("aclrtWaitAndResetNotify, which holds the stream up", a.wait(notify.value, stream), 0);
  CODE("aclrtMemsetAsync behind it",
       a.run([](const acl::Table& acl, void* to, void* in) { return acl.aclrtMemsetAsync(to, piece, 'w', piece, in); },
             range, stream),
       0);
  CODE("aclrtUnmapMem of its memory", a.unmap(range), code::rt_drv_internal);
  void* const own = b.stream();
  CODE("aclrtRecordNotify by another process", b.record(b.import_notify(key).value, own), 0);
  CODE("aclrtSynchronizeStream there", b.synchronize(own), 0);
  CODE("aclrtSynchronizeStream here", a.synchronize(stream), 0);
  CHECK(a.get(range).value == 'w');
  CODE("aclrtUnmapMem after that", a.unmap(range), 0);
}
