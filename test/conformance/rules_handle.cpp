// SPDX-License-Identifier: Apache-2.0
// R26 to R35, and R41: handles of physical memory, their tokens, and who is admitted to those.
#include "expect.hpp"

using namespace conformance;
namespace code = acl::code;
using acl::vmm_export::disable_pid_validation;
using acl::vmm_export::listed;

namespace {

// Only such memory crosses devices on every product (R43).
constexpr auto for_peers = acl::mem_attr::p2p_huge;

}  // namespace

TEST_CASE("R26: a process exports only handles that it got from aclrtMallocPhysical") {
  Acl a;
  Acl b;
  const Got<Handle> handle = a.physical();
  CODE("aclrtMallocPhysical", handle.code, 0);
  const Got<Token> token = a.export_v1(handle.value, disable_pid_validation);
  CODE("a handle of its own", token.code, 0);
  const Got<Handle> imported = b.import_v1(token.value);
  CODE("imported by another process", imported.code, 0);
  CODE("an imported handle", b.export_v1(imported.value, disable_pid_validation).code, Expected::refused());
}

TEST_CASE("R27: a handle and its token are one pair in a process") {
  Acl a;
  Acl b;
  const Handle handle = a.physical().value;
  const Token token = a.export_v1(handle, disable_pid_validation).value;
  CODE("exported again", a.export_v1(handle, disable_pid_validation).code,
       Expected::either({code::rt_drv_internal, code::rt_memory_allocation}));
  CODE("imported", b.import_v1(token).code, 0);
  // The documents call it an error; one driver gives the handle again and counts.
  CODE("imported again", b.import_v1(token).code, Expected::either({code::rt_drv_internal, 0}));
}

TEST_CASE("R28: a token is not imported in the process that exported it") {
  Acl a;
  const Handle handle = a.physical().value;
  const Token token = a.export_v1(handle, disable_pid_validation).value;
  CODE("imported by its exporter", a.import_v1(token).code, on("950") ? Expected(0) : code::rt_drv_internal);
}

TEST_CASE("R29: one reservation holds memory of one device and of one origin") {
  if (const std::string why = why_no_second_device(); !why.empty()) CONFORMANCE_SKIP(why);
  Acl a;
  Acl b;
  const Handle here = a.physical(piece, 0).value;
  const Handle there = a.physical(piece, 1).value;
  char* const range = static_cast<char*>(a.reserve(2 * piece).value);
  CODE("memory of one device", a.map(range, here), 0);
  CODE("memory of another beside it", a.map(range + piece, there), code::rt_drv_internal);
  const Handle lent = b.physical().value;
  const Got<Handle> imported = a.import_v1(b.export_v1(lent, disable_pid_validation).value);
  CODE("imported", imported.code, 0);
  // The documents forbid it; one driver looks at the device only.
  CODE("imported memory beside its own", a.map(range + piece, imported.value),
       Expected::either({code::rt_drv_internal, 0}));
}

TEST_CASE("R30: memory exists until it is imported, and then for whoever imported it") {
  Acl a;
  Acl b;
  const Handle gone = a.physical().value;
  const Token stale = a.export_v1(gone, disable_pid_validation).value;
  CODE("aclrtFreePhysical by the exporter", a.free_physical(gone), 0);
  CODE("imported after that", b.import_v1(stale).code, code::rt_invalid_handle);
  const Handle kept = a.physical().value;
  const Got<Handle> imported = b.import_v1(a.export_v1(kept, disable_pid_validation).value);
  CODE("imported before that", imported.code, 0);
  CODE("aclrtFreePhysical after the import", a.free_physical(kept), 0);
  void* const range = b.reserve().value;
  CODE("mapped by the importer after that", b.map(range, imported.value), 0);
  CODE("bytes put by the importer", b.put(range, 'b'), 0);
  CHECK(b.get(range).value == 'b');
}

TEST_CASE("R31: tokens of the second kind go with the calls of the second kind") {
  Acl a;
  Acl b;
  const Handle handle = a.physical().value;
  const Got<Token> second = a.export_v2(handle, disable_pid_validation);
  CODE("exported as the second kind", second.code, 0);
  CODE("imported as the first", b.import_v1(second.value).code, Expected::refused());
  const Got<Token> listed_token = a.export_v2(a.physical().value, listed);
  CODE("admitted as the first", a.admit_v1(listed_token.value, b.bare_pid()), Expected::refused());
  CODE("imported as the second", b.import_v2(second.value).code, 0);
}

TEST_CASE("R32: the second kind is imported with flags 0") {
  Acl a;
  Acl b;
  const Handle handle = a.physical().value;
  const Token token = a.export_v2(handle, disable_pid_validation).value;
  CODE("flags 1", b.import_v2(token, 1).code, code::invalid_param);
  CODE("flags 0", b.import_v2(token, 0).code, 0);
}

TEST_CASE("R33: the first kind names a device in range, the second takes the current one") {
  if (const std::string why = why_no_second_device(); !why.empty()) CONFORMANCE_SKIP(why);
  Acl a;
  Acl b(Start{.on = 1});
  const Token first = a.export_v1(a.physical(piece, 0, for_peers).value, disable_pid_validation).value;
  CODE("a device out of range", b.import_v1(first, 4711).code, code::rt_invalid_deviceid);
  CODE("a device in range", b.import_v1(first, 0).code, 0);
  const Token second = a.export_v2(a.physical(piece, 0, for_peers).value, disable_pid_validation).value;
  const Got<Handle> imported = b.import_v2(second);
  CODE("the current device", imported.code, 0);
  void* const range = b.reserve().value;
  CODE("mapped there", b.map(range, imported.value), 0);
  CODE("access for the current device", b.set_access(range, piece, 1), 0);
}

TEST_CASE("R34: across devices an import enables peer access") {
  if (const std::string why = why_no_second_device(); !why.empty()) CONFORMANCE_SKIP(why);
  Acl a;
  Acl b(Start{.on = 1});
  const Token token = a.export_v1(a.physical(piece, 0, for_peers).value, disable_pid_validation).value;
  if (is_ours()) CHECK(b.peer_status(1, 0) == 0);  // a card's status may say anything
  CODE("imported on another device", b.import_v1(token, 1).code, 0);
  if (is_ours()) CHECK(b.peer_status(1, 0) == 1);
}

TEST_CASE("R35: fabric tokens are there on A3 alone") {
  Acl a;
  Acl b;
  const Got<Fabric> token = a.export_fabric(a.physical().value, disable_pid_validation);
  CODE("exported as a fabric token", token.code, on("a3") ? Expected(0) : code::rt_feature_not_support);
  if (token.code == 0) CODE("imported from a fabric token", b.import_fabric(token.value).code, 0);
}

TEST_CASE("R41: importers are admitted by the exporter, to tokens with validation") {
  Acl a;
  Acl b;
  const Token token = a.export_v1(a.physical().value, listed).value;
  CODE("imported before it was admitted", b.import_v1(token).code, code::rt_drv_internal);
  CODE("admitting oneself to another's token", b.admit_v1(token, b.bare_pid()), code::rt_drv_internal);
  CODE("no pids", a.admit_v1(token, b.bare_pid(), 0), code::invalid_param);
  CODE("65,536 pids", a.admit_v1(token, b.bare_pid(), 65'536), code::rt_param_invalid);
  CODE("admitting it", a.admit_v1(token, b.bare_pid()), 0);
  CODE("imported after that", b.import_v1(token).code, 0);
  const Token open_token = a.export_v1(a.physical().value, disable_pid_validation).value;
  CODE("admitting to a token without validation", a.admit_v1(open_token, b.bare_pid()), code::rt_no_permission);
  CODE("admitting to a token of nobody", a.admit_v1(token + 4711, b.bare_pid()), code::rt_invalid_handle);
}
