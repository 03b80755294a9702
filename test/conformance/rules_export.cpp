// SPDX-License-Identifier: Apache-2.0
// R10 to R17: what is exported by key, and who is admitted to it.
#include "expect.hpp"

#include "support/isolation.hpp"

#include <unistd.h>

using namespace conformance;
namespace code = acl::code;
using acl::ipc_export::disable_pid_validation;
using acl::ipc_export::listed;

TEST_CASE("R10: the exported address is the start of a block of aclrtMalloc") {
  Acl a;
  const Got<void*> memory = a.allocate();
  char* const start = static_cast<char*>(memory.value);
  CODE("the start of a block", a.export_key(start, listed).code, 0);
  CODE("4,096 bytes into a block", a.export_key(start + 4096, listed, 4096).code, code::rt_drv_internal);
  CODE("64 bytes into a block", a.export_key(start + 64, listed, 64).code, code::rt_drv_internal);
  CODE("no address", a.export_key(nullptr, listed).code, code::invalid_param);
  CODE("no bytes", a.export_key(start, listed, 0).code, code::rt_param_invalid);
  CODE("memory of the host", a.run([](const acl::Table& acl) {
    alignas(4096) static char host[4096];
    Key key;
    return acl.aclrtIpcMemGetExportKey(host, sizeof(host), key.data(), key.size(), listed);
  }),
       code::rt_drv_internal);
}

TEST_CASE("R11: the room for a key has 65 bytes") {
  Acl a;
  void* const memory = a.allocate().value;
  CODE("room for 64 bytes", a.export_key(memory, listed, piece, 64).code, code::rt_param_invalid);
  CODE("room for 65 bytes", a.export_key(memory, listed, piece, 65).code, 0);
  CODE("room for 256 bytes", a.export_key(a.allocate().value, listed, piece, 256).code, 0);
}

TEST_CASE("R12: neither mapped nor imported memory is exported by key") {
  Acl a;
  Acl b;
  const Handle handle = a.physical().value;
  void* const range = a.reserve().value;
  CODE("aclrtMapMem", a.map(range, handle), 0);
  CODE("memory mapped from a physical handle", a.export_key(range, listed).code, code::rt_drv_internal);
  const Key key = a.export_key(a.allocate().value, disable_pid_validation).value;
  const Got<void*> imported = b.import_key(key);
  CODE("aclrtIpcMemImportByKey", imported.code, 0);
  CODE("imported memory", b.export_key(imported.value, listed).code, code::rt_drv_internal);
}

TEST_CASE("R13: with validation importers are admitted first, without it nobody is") {
  Acl a;
  Acl b;
  const Key listed_key = a.export_key(a.allocate().value, listed).value;
  CODE("imported before it was admitted", b.import_key(listed_key).code, code::rt_drv_internal);
  CODE("aclrtIpcMemSetImportPid", a.admit(listed_key, b.bare_pid()), 0);
  CODE("imported after it was admitted", b.import_key(listed_key).code, 0);
  const Key open_key = a.export_key(a.allocate().value, disable_pid_validation).value;
  CODE("admitting to a key without validation", a.admit(open_key, b.bare_pid()), code::rt_no_permission);
  CODE("imported without validation", b.import_key(open_key).code, 0);
}

TEST_CASE("R14: the pid that is admitted is the bare pid of the importer") {
  Acl a;
  Acl b;
  Acl c;
  void* const memory = a.allocate().value;
  const Key key = a.export_key(memory, listed).value;
  CODE("admitting another process", a.admit(key, c.bare_pid()), 0);
  CODE("imported by one that is not admitted", b.import_key(key).code, code::rt_drv_internal);
  CODE("imported by the one that is", c.import_key(key).code, 0);
}

TEST_CASE("R15: an importer starts before it is admitted") {
  if (const std::string why = devshare::test::why_no_fork_as(); !why.empty()) CONFORMANCE_SKIP(why);
  Acl a;
  const Key key = a.export_key(a.allocate().value, listed).value;
  const pid_t number = devshare::test::unused_pid();
  CODE("admitting a pid that no process has yet", a.admit(key, number), 0);
  ::usleep(50'000);  // start times are kept in hundredths of a second
  Acl late(Start{.number = number});
  REQUIRE(late.bare_pid() == number);
  CODE("imported by a process that started after that", late.import_key(key).code,
       on("950") ? Expected::either({code::rt_drv_internal, code::rt_no_permission}) : code::rt_drv_internal);
  CODE("admitting it again", a.admit(key, number), 0);
  CODE("imported after that", late.import_key(key).code, 0);
}

TEST_CASE("R16: at most 31 pids are admitted by one call") {
  Acl a;
  Acl b;
  const Key key = a.export_key(a.allocate().value, listed).value;
  const int pid = b.bare_pid();
  CODE("31 pids", a.admit(key, pid, 31), 0);
  CODE("32 pids", a.admit(key, pid, 32), code::rt_param_invalid);
  CODE("no pids", a.admit(key, pid, 0), code::rt_param_invalid);
}

TEST_CASE("R17: only the exporter admits") {
  Acl a;
  Acl b;
  const Key key = a.export_key(a.allocate().value, listed).value;
  CODE("admitting oneself to another's key", b.admit(key, b.bare_pid()), code::rt_drv_internal);
  CODE("imported after that", b.import_key(key).code, code::rt_drv_internal);
}
