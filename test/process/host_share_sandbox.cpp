// SPDX-License-Identifier: Apache-2.0
// B099: sharing where a sandbox or an old kernel refuses sealed memfds.
#include "handle_process.hpp"
#include "support/catch.hpp"
#include "support/isolation.hpp"

#include "host/block.hpp"

#include <sys/mman.h>

#include <cerrno>

using namespace devshare;
using namespace devshare::test;

namespace {

struct Sandbox {
  const char* refuses;
  int error;
  unsigned flags;
};

constexpr Sandbox sandboxes[] = {
    {"memfd_create with EPERM", EPERM, 0},
    {"memfd_create with ENOSYS", ENOSYS, 0},
    {"the sealing flag of memfd_create with EPERM", EPERM, MFD_ALLOW_SEALING},
};

}  // namespace

TEST_CASE("B099 two processes in a sandbox without sealed memfds share by key when both allow the fallback") {
  if (const std::string why = why_no_refused_system_calls(); !why.empty()) DEVSHARE_SKIP(why);
  for (const Sandbox& sandbox : sandboxes) {
    INFO("the sandbox refuses " << sandbox.refuses);
    Story story;
    story.actor("A", [&](Actor& me) {
      me.expect_equal(refuse_memfd_create(sandbox.error, sandbox.flags), 0, "a filter");
      const Process a(me, {{"FALLBACK", "allow"}});
      void* const memory = a.allocate();
      a.fill(memory, 0x5a);
      me.expect(!host::PinnedBlock(memory).sealed(), "A's memory is not sealed, and says so");
      const Key key = a.export_key(memory, listed);
      a.admit(key, me.receive<std::int32_t>("B"));
      me.send("B", key);
      me.pause_until("B", "wrote");
      me.expect_equal(a.peek(memory), 0x66, "A sees what B wrote");
      a.close(key);
      me.step("closed");
      a.free(memory);
      a.finalize();
    });
    story.actor("B", [&](Actor& me) {
      me.expect_equal(refuse_memfd_create(sandbox.error, sandbox.flags), 0, "a filter");
      const Process b(me, {{"FALLBACK", "allow"}});
      me.send("A", b.bare_pid());
      const Key key = me.receive<Key>("A");
      void* const imported = b.import_key(key);
      me.expect(!host::PinnedBlock(imported).sealed(), "B's import is not sealed, and says so");
      me.expect_equal(b.peek(imported), 0x5a, "B sees what A wrote");
      b.fill(imported, 0x66);
      me.step("wrote");
      me.pause_until("A", "closed");
      b.is_lost(imported);
      b.close(key);
      b.finalize();
    });
    story.run();
  }
}

TEST_CASE("B099 a process that does not allow the fallback refuses memory of one that does") {
  if (const std::string why = why_no_refused_system_calls(); !why.empty()) DEVSHARE_SKIP(why);
  Story story;
  story.actor("A", [](Actor& me) {
    me.expect_equal(refuse_memfd_create(EPERM), 0, "a filter");
    const Process a(me, {{"FALLBACK", "allow"}});
    me.send("B", a.export_key(a.allocate(), open_to_all));
    me.pause_until("B", "refused");
  });
  story.actor("B", [](Actor& me) {
    const Process b(me);
    b.import_fails(me.receive<Key>("A"), code::rt_drv_internal, Reason::protocol);
    me.step("refused");
  });
  story.run();
}

TEST_CASE("B099 an exporter whose control page cannot be made is refused with the errno") {
  if (const std::string why = why_no_refused_system_calls(); !why.empty()) DEVSHARE_SKIP(why);
  Story story;
  story.actor("A", [](Actor& me) {
    const Process a(me);
    void* const memory = a.allocate();
    me.expect_equal(refuse_memfd_create(EPERM), 0, "a filter");
    Key key{};
    me.expect(api().aclrtIpcMemGetExportKey(memory, size, key.bytes, sizeof key.bytes, listed) != 0, "no export");
    me.expect_equal(host::last_cause().reason, Reason::backend_unavailable, "the reason");
    me.expect_equal(host::last_cause().system_errno, EPERM, "and the errno");
    a.free(memory);
  });
  story.run();
}

TEST_CASE("B099 two processes in a sandbox without sealed memfds share a handle when both allow the fallback") {
  if (const std::string why = why_no_refused_system_calls(); !why.empty()) DEVSHARE_SKIP(why);
  for (const Sandbox& sandbox : sandboxes) {
    for (const bool both : {true, false}) {
      INFO("the sandbox refuses " << sandbox.refuses << (both ? "" : ", and B lives outside it"));
      Story story;
      story.actor("A", [&](Actor& me) {
        me.expect_equal(refuse_memfd_create(sandbox.error, sandbox.flags), 0, "a filter");
        const HandleProcess a(me, {{"FALLBACK", "allow"}});
        const Handle handle = a.make();
        me.expect(!host::physical_of(handle)->sealed, "A's memory is not sealed, and says so");
        a.put(handle, 'a');
        me.send("B", a.share(handle));
        me.pause_until("B", "done");
      });
      story.actor("B", [both](Actor& me) {
        const HandleProcess b(me, {{"FALLBACK", both ? "allow" : "refuse"}});
        const Token token = me.receive<Token>("A");
        if (both) {
          const Handle handle = b.import(token);
          me.expect(!host::physical_of(handle)->sealed, "B's memory is not sealed, and says so");
          me.expect_equal(b.get(handle), 'a', "B sees what A wrote");
          b.release(handle);
        } else {
          b.import_fails(token, code::rt_drv_internal, Reason::protocol);
        }
        b.has_nothing_left();
        me.step("done");
      });
      story.run();
    }
  }
}
