// SPDX-License-Identifier: Apache-2.0
// R18 to R25: what is imported by key, and how it ends.
#include "expect.hpp"

using namespace conformance;
namespace code = acl::code;
using acl::ipc_export::disable_pid_validation;
using acl::ipc_import::enable_peer_access;
using acl::ipc_import::plain;

namespace {

// Only memory of such a policy crosses devices on every product (R43).
constexpr auto for_peers = acl::malloc_policy::huge_first_p2p;

}  // namespace

TEST_CASE("R18: memory exists when it is imported") {
  Acl a;
  Acl b;
  void* const memory = a.allocate().value;
  const Key closed = a.export_key(memory, disable_pid_validation).value;
  CODE("aclrtIpcMemClose by the exporter", a.close(closed), 0);
  CODE("imported after it was closed", b.import_key(closed).code, code::rt_drv_internal);
  const Key freed = a.export_key(memory, disable_pid_validation).value;
  CODE("aclrtFree by the exporter", a.free(memory), 0);
  CODE("imported after it was freed", b.import_key(freed).code, code::rt_drv_internal);
  void* const lost = a.allocate().value;
  const Key orphan = a.export_key(lost, disable_pid_validation).value;
  a.kill();
  CODE("imported after its exporter was killed", b.import_key(orphan).code, code::rt_drv_internal);
}

TEST_CASE("R19: across devices an import enables peer access, or finds it enabled") {
  if (const std::string why = why_no_second_device(); !why.empty()) CONFORMANCE_SKIP(why);
  Acl a;
  Acl b(Start{.on = 1});
  Acl c(Start{.on = 1});
  const Key key = a.export_key(a.allocate(piece, for_peers).value, disable_pid_validation).value;
  CODE("flag 0, without peer access", b.import_key(key, plain).code, code::rt_drv_internal);
  CODE("flag 1", b.import_key(key, enable_peer_access).code, 0);
  CODE("aclrtDeviceEnablePeerAccess, there", c.enable_peer(0), 0);
  CODE("aclrtSetDevice of the other", c.set_device(0), 0);
  CODE("aclrtDeviceEnablePeerAccess, and back", c.enable_peer(1), 0);
  CODE("aclrtSetDevice of the first", c.set_device(1), 0);
  CODE("flag 0, with peer access", c.import_key(key, plain).code, 0);
}

TEST_CASE("R20: the exporter closes after every importer has") {
  Acl a;
  Acl b;
  void* const memory = a.allocate().value;
  CODE("bytes put by the exporter", a.put(memory, 'a'), 0);
  const Key key = a.export_key(memory, disable_pid_validation).value;
  const Got<void*> imported = b.import_key(key);
  CHECK(b.get(imported.value).value == 'a');
  CODE("aclrtIpcMemClose by the exporter, too early", a.close(key), 0);
  CODE("a copy from the import after that", b.get(imported.value).code, Expected::refused());
  CODE("aclrtIpcMemClose by the importer after that", b.close(key), 0);
}

TEST_CASE("R21: the exporter and every importer close") {
  Acl a;
  Acl b;
  Acl c;
  void* const memory = a.allocate().value;
  const Key key = a.export_key(memory, disable_pid_validation).value;
  CODE("imported by one", b.import_key(key).code, 0);
  CODE("imported by another", c.import_key(key).code, 0);
  CODE("aclrtIpcMemClose by the one", b.close(key), 0);
  CODE("aclrtIpcMemClose by the other", c.close(key), 0);
  CODE("aclrtIpcMemClose by the exporter", a.close(key), 0);
  CODE("aclrtIpcMemClose by the exporter again", a.close(key), code::rt_drv_internal);
  CODE("aclrtFree", a.free(memory), 0);
}

TEST_CASE("R22: the exporter closes before it frees") {
  Acl a;
  Acl b;
  void* const memory = a.allocate().value;
  const Key key = a.export_key(memory, disable_pid_validation).value;
  const Got<void*> imported = b.import_key(key);
  CODE("a copy to the import", b.put(imported.value, 'b'), 0);
  CODE("aclrtFree of exported memory", a.free(memory), 0);
  CODE("a copy to the import after that", b.put(imported.value, 'b'), Expected::refused());
  CODE("aclrtIpcMemClose by the importer after that", b.close(key), 0);
}

TEST_CASE("R23: an importer does not free what it imported") {
  Acl a;
  Acl b;
  const Key key = a.export_key(a.allocate().value, disable_pid_validation).value;
  const Got<void*> imported = b.import_key(key);
  CODE("aclrtFree of an import", b.free(imported.value), Expected::refused());
  CODE("a copy from it after that", b.get(imported.value).code, 0);
  CODE("aclrtIpcMemClose after that", b.close(key), 0);
}

TEST_CASE("R24: a process closes as often as it imported") {
  Acl a;
  Acl b;
  const Key key = a.export_key(a.allocate().value, disable_pid_validation).value;
  const Got<void*> first = b.import_key(key);
  const Got<void*> second = b.import_key(key);
  CODE("the first import", first.code, 0);
  CODE("the second import", second.code, 0);
  CHECK((first.value == second.value) == !on("950"));
  CODE("aclrtIpcMemClose for one", b.close(key), 0);
  CODE("a copy from the other after that", b.get(first.value).code, 0);
  CODE("aclrtIpcMemClose for the other", b.close(key), 0);
  CODE("aclrtIpcMemClose once more", b.close(key), on("950") ? code::rt_no_permission : code::rt_drv_internal);
  CODE("imported by a third process, since the export stands", Acl().import_key(key).code, 0);
}

TEST_CASE("R25: a process imports a key on one device") {
  if (on("950")) CONFORMANCE_SKIP("each import has an address of its own there");
  if (const std::string why = why_no_second_device(); !why.empty()) CONFORMANCE_SKIP(why);
  Acl a;
  Acl b;
  const Key key = a.export_key(a.allocate(piece, for_peers).value, disable_pid_validation).value;
  CODE("imported on one device", b.import_key(key).code, 0);
  CODE("aclrtSetDevice of another", b.set_device(1), 0);
  CODE("imported there too", b.import_key(key).code, code::rt_drv_internal);
}
