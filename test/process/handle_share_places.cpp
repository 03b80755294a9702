// SPDX-License-Identifier: Apache-2.0
// Where shared physical memory may be: on another device (R34), in the host's memory, on another server.
#include "handle_process.hpp"
#include "support/catch.hpp"

#include <string>

using namespace devshare;
using namespace devshare::test;

TEST_CASE("an import on another device opens peer access both ways, and none where there is no link (R34)") {
  for (const TokenKind kind : {TokenKind::v1, TokenKind::v2}) {
    for (const bool linked : {true, false}) {
      CAPTURE(name_of(kind), linked);
      const std::string peers = linked ? "01/10" : "01/00";
      Story story;
      story.actor("A", [kind, peers](Actor& me) {
        const HandleProcess a(me, {{"PEERS", peers}});
        me.send("B", a.share(a.make(), open_to_all, kind));
        me.pause_until("B", "done");
      });
      story.actor("B", [kind, linked, peers](Actor& me) {
        // The first version names the device, the second takes the thread's.
        const HandleProcess b(me, {{"PEERS", peers}}, kind == TokenKind::v1 ? 0 : 1);
        const Token token = me.receive<Token>("A");
        std::int32_t on = -1;
        if (linked) {
          const Handle handle = b.import(token, 1);
          {
            const host::Physical memory = host::physical_of(handle);
            me.expect_equal(memory->device, 0, "the memory is where it was");
            me.expect_equal(memory->local_device, 1, "and opened on the other device");
          }
          me.expect_equal(api().aclrtDevicePeerAccessStatus(0, 1, &on), 0, "the status");
          me.expect_equal(on, 1, "is on");
          me.expect_equal(host::counters().peer_grants, std::uint64_t{2}, "both ways");
          me.expect_equal(host::bytes_in_use(1), std::uint64_t{0}, "nothing is used on the importer's device");
          b.release(handle);
          me.expect_equal(host::counters().peer_grants, std::uint64_t{2}, "for as long as the process lives");
        } else {
          b.import_fails(token, code::rt_drv_internal, Reason::peer_impossible, 1);
          me.expect_equal(host::counters().peer_grants, std::uint64_t{0}, "nothing is on");
        }
        b.has_nothing_left();
        me.step("done");
      });
      story.run();
    }
  }
}

TEST_CASE("device numbers are those of each process, also in the properties of an import (R60, R62)") {
  Story story;
  story.actor("A", [](Actor& me) {
    const HandleProcess a(me, {{"DEVICES", "4"}, {"ASCEND_RT_VISIBLE_DEVICES", "2,3"}}, 1);
    me.send("B", a.share(a.make(handle_size, 1)));  // physical 3
    me.pause_until("B", "done");
  });
  story.actor("B", [](Actor& me) {
    const HandleProcess b(me, {{"DEVICES", "4"}, {"ASCEND_RT_VISIBLE_DEVICES", "3"}});
    const Handle handle = b.import(me.receive<Token>("A"), 0);
    acl::aclrtPhysicalMemProp property{};
    me.expect_equal(api().aclrtMemGetAllocationPropertiesFromHandle(handle, &property), 0, "it has properties");
    me.expect_equal(property.location.id, 0U, "B's number of A's device");
    me.expect_equal(host::counters().peer_grants, std::uint64_t{0}, "it is the same device");
    me.expect_equal(host::bytes_in_use(3), handle_size, "physical 3");
    b.release(handle);
    me.step("done");
  });
  story.run();
}

TEST_CASE("memory of the host is shared like a device's, and no device counts it") {
  Story story;
  story.actor("A", [](Actor& me) {
    const HandleProcess a(me);
    const Handle handle = a.make_at({0, acl::mem_location_type::host_numa}, 2);
    a.put(handle, 'h');
    me.send("B", a.share(handle));
    me.pause_until("B", "done");
  });
  story.actor("B", [](Actor& me) {
    const HandleProcess b(me);
    const Handle handle = b.import(me.receive<Token>("A"), 1);
    me.expect_equal(b.get(handle), 'h', "B sees what A wrote");
    acl::aclrtPhysicalMemProp property{};
    me.expect_equal(api().aclrtMemGetAllocationPropertiesFromHandle(handle, &property), 0, "it has properties");
    me.expect_equal(property.location.type, acl::mem_location_type::host_numa, "which say where it is");
    me.expect_equal(property.memAttr, 2, "and of what kind");
    me.expect_equal(host::counters().peer_grants, std::uint64_t{0}, "no device is anybody's peer for it");
    me.expect_equal(host::bytes_in_use(0) + host::bytes_in_use(1), std::uint64_t{0}, "no device counts it");
    b.release(handle);
    b.has_nothing_left();
    me.step("done");
  });
  story.run();
}

TEST_CASE("keys and plain tokens end at their server, and fabric tokens do not") {
  Story story;
  story.actor("A", [](Actor& me) {
    const HandleProcess a(me, {{"PROFILE", "a3"}, {"SERVER", "7"}});
    me.send("B", a.export_key(a.allocate(), open_to_all));
    for (const TokenKind kind : all_kinds) me.send("B", a.share(a.make(), open_to_all, kind));
    const Token narrow = a.share(a.make(), listed, TokenKind::fabric);
    me.send("B", narrow);
    me.pause_until("B", "refused");
    a.admit(narrow, me.receive<std::int32_t>("B"));
    me.step("admitted");
    me.pause_until("B", "done");
  });
  story.actor("B", [](Actor& me) {
    const HandleProcess b(me, {{"PROFILE", "a3"}, {"SERVER", "9"}}, 1);
    b.import_fails(me.receive<Key>("A"), code::rt_drv_internal, Reason::other_server);
    b.has_text("exported on server 7");
    for (const TokenKind kind : {TokenKind::v1, TokenKind::v2}) {
      const Token token = me.receive<Token>("A");
      me.expect(token.kind == kind, "in order");
      b.import_fails(token, code::rt_invalid_handle, Reason::other_server, 1);
      me.expect_equal(host::last_cause().available, std::uint64_t{7}, "the cause has the server");
      b.has_text("exported on server 7 and this process is on server 9");
      b.admit_fails(token, code::rt_invalid_handle, Reason::other_server);
    }
    const Handle handle = b.import(me.receive<Token>("A"));
    b.put(handle, 'f');
    me.expect_equal(b.get(handle), 'f', "the memory works");
    me.expect_equal(host::bytes_in_use(0) + host::bytes_in_use(1), std::uint64_t{0}, "it counts where it is, not here");
    me.expect_equal(host::counters().peer_grants, std::uint64_t{0}, "and takes no peer access");
    b.release(handle);
    const Token narrow = me.receive<Token>("A");
    b.import_fails(narrow, code::rt_drv_internal, Reason::not_admitted);
    b.admit_fails(narrow, code::rt_drv_internal, Reason::not_the_exporter);
    me.step("refused");
    me.send("A", b.bare_pid());
    me.pause_until("A", "admitted");
    b.release(b.import(narrow));
    b.has_nothing_left();
    me.step("done");
  });
  story.run();
}
