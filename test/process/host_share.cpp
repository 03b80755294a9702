// SPDX-License-Identifier: Apache-2.0
// Sharing by key between processes of the host runtime, over the C ABI alone.
#include "support/catch.hpp"
#include "support/descriptors.hpp"
#include "support/sanitizers.hpp"
#include "support/story.hpp"

#include "host/host_runtime.hpp"

#include <devshare/acl/codes.hpp>
#include <devshare/host.hpp>

#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

using namespace devshare;
using namespace devshare::test;
using namespace std::chrono_literals;
using host::Reason;
namespace code = acl::code;

namespace {

constexpr std::uint64_t listed = acl::ipc_export::listed;
constexpr std::uint64_t open_to_all = acl::ipc_export::disable_pid_validation;
constexpr std::size_t size = 4096;

struct Key {
  char bytes[acl::ipc_key_size];
};

const acl::Table& api() { return host::table(); }

// The calls of this test, each of which must succeed.
class Process {
 public:
  explicit Process(Actor& me, std::int32_t device = 0) : me_(me) {
    me.expect_equal(api().aclInit(nullptr), 0, "aclInit");
    me.expect_equal(api().aclrtSetDevice(device), 0, "aclrtSetDevice");
  }

  std::int32_t bare_pid() const {
    std::int32_t pid = 0;
    me_.expect_equal(api().aclrtDeviceGetBareTgid(&pid), 0, "aclrtDeviceGetBareTgid");
    return pid;
  }
  void* allocate(std::size_t bytes = size) const {
    void* memory = nullptr;
    me_.expect_equal(api().aclrtMalloc(&memory, bytes, acl::malloc_policy::huge_first), 0, "aclrtMalloc");
    return memory;
  }
  Key export_key(void* memory, std::uint64_t flags, std::size_t bytes = size) const {
    Key key{};
    me_.expect_equal(api().aclrtIpcMemGetExportKey(memory, bytes, key.bytes, sizeof key.bytes, flags), 0,
                     "aclrtIpcMemGetExportKey");
    return key;
  }
  void admit(const Key& key, std::int32_t pid) const {
    me_.expect_equal(api().aclrtIpcMemSetImportPid(key.bytes, &pid, 1), 0, "aclrtIpcMemSetImportPid");
  }
  void* import_key(const Key& key, std::uint64_t flags = 1) const {
    void* imported = nullptr;
    const acl::aclError result = api().aclrtIpcMemImportByKey(&imported, key.bytes, flags);
    if (result != 0) me_.expect(false, fmt::format("the import fails: {} {}", result, text()));
    return imported;
  }
  void import_fails(const Key& key, acl::aclError expected, Reason reason) const {
    void* imported = nullptr;
    me_.expect_equal(api().aclrtIpcMemImportByKey(&imported, key.bytes, 1), expected, "the code of the refused import");
    me_.expect_equal(host::last_cause().reason, reason, "the reason of the refused import");
  }
  void close(const Key& key) const { me_.expect_equal(api().aclrtIpcMemClose(key.bytes), 0, "aclrtIpcMemClose"); }
  void free(void* memory) const { me_.expect_equal(api().aclrtFree(memory), 0, "aclrtFree"); }
  void fill(void* memory, unsigned char value, std::size_t bytes = size) const {
    me_.expect_equal(api().aclrtMemset(memory, bytes, value, bytes), 0, "aclrtMemset");
  }
  // The byte at an offset, or -1 and the reason kept when it cannot be read.
  int peek(const void* memory, std::size_t offset = 0) const {
    unsigned char byte = 0;
    const auto* at = static_cast<const char*>(memory) + offset;
    return api().aclrtMemcpy(&byte, 1, at, 1, acl::memcpy_kind::device_to_host) == 0 ? byte : -1;
  }
  void is_lost(const void* memory) const {
    me_.expect_equal(peek(memory), -1, "the memory can no longer be read");
    me_.expect_equal(host::last_cause().reason, Reason::exporter_gone, "because its exporter has gone");
  }
  std::string text() const {
    const char* recent = api().aclGetRecentErrMsg();
    return recent != nullptr ? recent : "";
  }
  void has_text(std::string_view part) const {
    const std::string recent = text();
    me_.expect(recent.find(part) != std::string::npos, fmt::format("'{}' is in the text: {}", part, recent));
  }
  void finalize() const { me_.expect_equal(api().aclFinalize(), 0, "aclFinalize"); }

 private:
  Actor& me_;
};

}  // namespace

TEST_CASE("B reads and writes what A allocated, admitted it to, and takes back") {
  Story story;
  story.actor("A", [](Actor& me) {
    const Process a(me);
    void* memory = a.allocate(3 << 20);
    a.fill(memory, 'a', 3 << 20);
    const Key key = a.export_key(memory, listed, 3 << 20);
    a.admit(key, me.receive<std::int32_t>("B"));
    me.send("B", key);
    me.pause_until("B", "closed");
    me.expect_equal(a.peek(memory, (3 << 20) - 1), 'b', "A sees what B wrote");
    a.close(key);
    a.free(memory);
    me.expect_equal(host::counters().descriptors, std::uint64_t{0}, "no descriptor of A's is left");
  });
  story.actor("B", [](Actor& me) {
    const Process b(me);
    me.send("A", b.bare_pid());
    const Key key = me.receive<Key>("A");
    void* memory = b.import_key(key);
    me.expect_equal(b.peek(memory), 'a', "B sees what A wrote");
    me.expect_equal(b.peek(memory, (3 << 20) - 1), 'a', "to its end");
    me.expect_equal(b.peek(memory, 3 << 20), -1, "and nothing behind it");
    b.fill(memory, 'b', 3 << 20);
    b.close(key);
    me.expect_equal(b.peek(memory), -1, "a closed address is no memory");
    me.step("closed");
  });
  story.run();
}

TEST_CASE("who was not admitted is refused, and told both numbers (R13, R14)") {
  Story story;
  story.actor("A", [](Actor& me) {
    const Process a(me);
    const Key key = a.export_key(a.allocate(), listed);
    me.send("B", key);
    me.pause_until("B", "refused by an empty list");
    a.admit(key, 1);
    me.step("admitted another");
    me.pause_until("B", "refused");
    a.admit(key, me.receive<std::int32_t>("B"));
    me.step("admitted");
    me.pause_until("B", "done");
  });
  story.actor("B", [](Actor& me) {
    const Process b(me);
    const Key key = me.receive<Key>("A");
    b.import_fails(key, code::rt_drv_internal, Reason::not_admitted);
    b.has_text("lists 0 pids");
    me.step("refused by an empty list");
    me.pause_until("A", "admitted another");
    b.import_fails(key, code::rt_drv_internal, Reason::not_admitted);
    const std::int32_t named = host::last_cause().pid;
    b.has_text(fmt::format("goes by {} and was not admitted: the key lists 1 pid, 1 among them", b.bare_pid()));
    me.expect_equal(named, b.bare_pid(), "the cause carries the importer's number");
    me.step("refused");
    me.send("A", b.bare_pid());
    me.pause_until("A", "admitted");
    b.import_key(key);
    b.close(key);
    me.step("done");
  });
  story.run();
}
