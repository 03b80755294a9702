// SPDX-License-Identifier: Apache-2.0
// R42 to R45, and R60 to R62: use across devices, and what does not travel between processes.
#include "expect.hpp"

using namespace conformance;
namespace code = acl::code;
using acl::ipc_export::disable_pid_validation;
using acl::malloc_policy::huge_first;
using acl::malloc_policy::huge_first_p2p;

TEST_CASE("R42: no copies to or from the host, and no blocking ones, with memory of another device") {
  if (const std::string why = why_no_second_device(); !why.empty()) CONFORMANCE_SKIP(why);
  Acl a;
  Acl b(Start{.on = 1});
  void* const memory = a.allocate(piece, huge_first_p2p).value;
  CODE("bytes put by the exporter", a.put(memory, 'a'), 0);
  const Key key = a.export_key(memory, disable_pid_validation).value;
  const Got<void*> imported = b.import_key(key);
  CODE("imported on another device", imported.code, 0);
  CODE("a copy to the host", b.get(imported.value).code, Expected::refused());
  CODE("a copy from the host", b.put(imported.value, 'b'), Expected::refused());
  void* const own = b.allocate(piece, huge_first_p2p).value;
  CODE("a blocking copy between devices", b.copy_inside(own, imported.value),
       on("950") ? Expected::either({0, code::rt_feature_not_support}) : Expected::refused());
  void* const stream = b.stream();
  CODE("an asynchronous copy between devices",
       b.run([](const acl::Table& acl, void* to, void* from,
                void* in) { return acl.aclrtMemcpyAsync(to, 64, from, 64, acl::memcpy_kind::device_to_device, in); },
             own, imported.value, stream),
       0);
  CODE("aclrtSynchronizeStream", b.synchronize(stream), 0);
  CHECK(b.get(own).value == 'a');
}

TEST_CASE("R43: memory that crosses devices has a P2P policy on 310P") {
  if (const std::string why = why_no_second_device(); !why.empty()) CONFORMANCE_SKIP(why);
  Acl a;
  Acl b(Start{.on = 1});
  const Key without = a.export_key(a.allocate(piece, huge_first).value, disable_pid_validation).value;
  const Key with = a.export_key(a.allocate(piece, huge_first_p2p).value, disable_pid_validation).value;
  CODE("memory without a P2P policy, imported on another device", b.import_key(without).code,
       on("310p") ? Expected::refused() : Expected(0));
  CODE("memory with one", b.import_key(with).code, 0);
}

TEST_CASE("R44: peer access is enabled with flags 0, for another device") {
  if (const std::string why = why_no_second_device(); !why.empty()) CONFORMANCE_SKIP(why);
  Acl a;
  CODE("flags 1", a.enable_peer(1, 1), code::feature_unsupported);
  CODE("the current device", a.enable_peer(0), code::invalid_param);
  CODE("another device", a.enable_peer(1), 0);
}

TEST_CASE("R45: one direction alone has no effect") {
  if (const std::string why = why_no_second_device(); !why.empty()) CONFORMANCE_SKIP(why);
  Acl a;
  void* const here = a.allocate(piece, huge_first_p2p).value;
  CODE("aclrtDeviceEnablePeerAccess, there", a.enable_peer(1), 0);
  CODE("aclrtSetDevice of the other", a.set_device(1), 0);
  void* const there = a.allocate(piece, huge_first_p2p).value;
  CODE("a copy between the two, with one direction", a.copy_inside(there, here), Expected::refused());
  if (is_ours()) CHECK(a.peer_status(0, 1) == 0);  // a card's status may say anything
  CODE("aclrtDeviceEnablePeerAccess, and back", a.enable_peer(0), 0);
  CODE("a copy between the two, with both", a.copy_inside(there, here), 0);
  if (is_ours()) CHECK(a.peer_status(0, 1) == 1);
}

TEST_CASE("R60: aclrtDevicePeerAccessStatus and aclrtMemSetAccess take a number that the driver has for a device") {
  if (const std::string why = why_no_second_device(); !why.empty()) CONFORMANCE_SKIP(why);
  if (is_ours()) {  // a third device, so that the numbers differ; and a card's status may say anything
    Acl b(Start{.set = {{"DEVSHARE_HOST_DEVICES", "3"}, {"ASCEND_RT_VISIBLE_DEVICES", "1,2"}}});
    CODE("aclrtDeviceEnablePeerAccess between the user's 0 and 1", b.enable_peer(1), 0);
    CODE("aclrtSetDevice of the other", b.set_device(1), 0);
    CODE("aclrtDeviceEnablePeerAccess back", b.enable_peer(0), 0);
    CHECK(b.peer_status(0, 1) == 0);  // the peer is the driver's 1
    CHECK(b.peer_status(0, 2) == 1);
  }
  Acl a(Start{.set = {{"ASCEND_RT_VISIBLE_DEVICES", "1"}}});
  const Got<Handle> handle = a.physical();
  void* const range = a.reserve().value;
  CODE("aclrtMallocPhysical on the user's device 0, the driver's 1", handle.code, 0);
  CODE("aclrtMapMem", a.map(range, handle.value), 0);
  CODE("aclrtMemSetAccess for device 0", a.set_access(range, piece, 0), code::rt_drv_internal);
  CODE("aclrtMemSetAccess for device 1", a.set_access(range, piece, 1), 0);
}

TEST_CASE("R61: a key is opaque, and goes whole") {
  Acl a;
  Acl b;
  const Key key = a.export_key(a.allocate().value, disable_pid_validation).value;
  Key changed = key;
  changed[30] = static_cast<char>(changed[30] == '1' ? '2' : '1');
  CODE("a key with one byte changed", b.import_key(changed).code, code::rt_drv_internal);
  Key cut = key;
  cut[20] = '\0';
  CODE("a key cut short", b.import_key(cut).code, code::rt_drv_internal);
  CODE("the key as it was", b.import_key(key).code, 0);
}

TEST_CASE("R62: a device address means nothing in another process") {
  Acl a;
  Acl b;
  void* const memory = a.allocate().value;
  void* const own = b.allocate().value;
  CODE("bytes put by one process", a.put(memory, 'a'), 0);
  CODE("bytes put by the other", b.put(own, 'b'), 0);
  const Got<char> seen = b.get(memory);
  CHECK(seen.value != 'a');
  if (seen.code == 0) CHECK(seen.value == 'b');  // the same number for memory of its own
}
