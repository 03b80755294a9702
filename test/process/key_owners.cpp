// SPDX-License-Identifier: Apache-2.0
// Who owns the memory behind a key: an engine's own type, a promise, the key itself; and what becomes of it when a step
// is dropped or refused.
#include "support/reports.hpp"
#include "support/sharing.hpp"

#include <utility>

using namespace devshare;
using namespace devshare::test;

namespace {

constexpr std::size_t KiB = 1024;

std::uint64_t on_both_devices() { return host::bytes_in_use(0) + host::bytes_in_use(1); }

// A block as an engine has it: of a pool that counts its blocks. It is freed by whoever ends the last owner.
class EngineBlock {
 public:
  EngineBlock(DeviceMemory memory, int& alive) : memory_(std::move(memory)), alive_(&alive) { ++*alive_; }
  EngineBlock(EngineBlock&& other) noexcept
      : memory_(std::move(other.memory_)), alive_(std::exchange(other.alive_, nullptr)) {}
  EngineBlock& operator=(EngineBlock&& other) noexcept {
    std::swap(memory_, other.memory_);
    std::swap(alive_, other.alive_);
    return *this;
  }
  ~EngineBlock() {
    if (alive_ != nullptr) --*alive_;
  }

  DeviceSpan<std::byte> bytes() noexcept { return memory_.bytes(); }
  Device device() const noexcept { return memory_.device(); }

 private:
  DeviceMemory memory_;
  int* alive_;
};

}  // namespace

template <>
inline constexpr bool devshare::is_key_exportable<EngineBlock> = true;

TEST_CASE("an engine's own block type is exported, kept alive by the key, and comes back") {
  Story story;
  story.actor("A", [](Actor& me) {
    const Party a(me);
    int alive = 0;
    SharedMemoryKey<EngineBlock> key =
        me.must(export_key(EngineBlock(a.allocate(pattern(4 * KiB)), alive)), "the block is exported");
    me.expect_equal(alive, 1, "the key has the block");
    a.share_with("B", key);
    me.pause_until("B", "closed");
    {
      EngineBlock block = me.must(std::move(key).close(), "A closes");
      me.expect_equal(alive, 1, "the block is back");
      me.expect(a.read(block.bytes()) == pattern(4 * KiB, 1), "with what B wrote");
      auto again = me.must(export_key_unrestricted(std::move(block)), "it can be exported again");
      me.expect_equal(alive, 1, "by the same block");
    }
    me.expect_equal(alive, 0, "a key that ends, ends its block");
    me.expect_equal(on_both_devices(), 0U, "the devices are empty");
    a.leave();
  });
  story.actor("B", [](Actor& me) {
    const Party b(me);
    b.introduce_myself_to("A");
    ImportedMapping mapping = b.import(b.ticket_from("A"));
    me.expect(b.read(mapping.bytes()) == pattern(4 * KiB), "B reads the engine's block");
    b.write(mapping.bytes(), pattern(4 * KiB, 1));
    me.must(std::move(mapping).close(), "B closes");
    b.leave();
    me.step("closed");
  });
  story.run();
}

TEST_CASE("memory that somebody else owns is exported by promise, and the key frees nothing") {
  Story story;
  story.actor("A", [](Actor& me) {
    const Party a(me);
    DeviceMemory memory = a.allocate(pattern(4 * KiB));
    auto key = me.must(export_key(UnownedMemory::promise_outlives(a.device, memory.bytes())), "A exports");
    a.share_with("B", key);
    me.pause_until("B", "closed");
    const UnownedMemory promise = me.must(std::move(key).close(), "A closes");
    me.expect(promise.bytes().data() == memory.bytes().data() && promise.size() == memory.size(),
              "the promise is back");
    me.expect(a.read(memory.bytes()) == pattern(4 * KiB), "and the memory where it was");
    { auto dropped = me.must(export_key(UnownedMemory(promise)), "a key of it may be dropped"); }
    me.expect_equal(host::counters().allocations, 1U, "and nothing is freed by that either");
    me.must(std::move(memory).close(), "its owner frees it");
    a.leave();
  });
  story.actor("B", [](Actor& me) {
    const Party b(me);
    b.introduce_myself_to("A");
    ImportedMapping mapping = b.import(b.ticket_from("A"));
    me.expect(b.read(mapping.bytes()) == pattern(4 * KiB), "B reads");
    me.must(std::move(mapping).close(), "B closes");
    b.leave();
    me.step("closed");
  });
  story.run();
}

TEST_CASE("what is dropped instead of closed is closed all the same, import and export (R21)") {
  Story story;
  story.actor("A", [](Actor& me) {
    const Party a(me);
    {
      auto key = me.must(export_key(a.allocate(pattern(4 * KiB))), "A exports");
      a.share_with("B", key);
      me.pause_until("B", "dropped");
    }
    me.expect_equal(on_both_devices(), 0U, "the devices are empty");
    a.leave();
  });
  story.actor("B", [](Actor& me) {
    const Party b(me);
    b.introduce_myself_to("A");
    const ReceivedTicket ticket = b.ticket_from("A");
    {
      const ImportedMapping mapping = b.import(ticket);
      const ImportedMapping same = b.import(ticket);
      me.expect(mapping.bytes().data() == same.bytes().data(), "two mappings of a ticket are at one address");
      me.expect_equal(host::counters().key_opens, 1U, "and one import of the runtime");
    }
    b.leave();
    me.step("dropped");
  });
  story.run();
}

TEST_CASE("B045 a step that the runtime refuses gives its object back, as good as before") {
  constexpr Refusal injected{Errc::refused, code::rt_drv_internal, Reason::injected};
  Story story;
  story.actor("A", [&](Actor& me) {
    const Party a(me);
    host::fail(acl::Entry::aclrtIpcMemGetExportKey, 1, code::rt_drv_internal);
    auto refused_export = export_key(a.allocate(pattern(4 * KiB)));
    if (refused_export) me.fail("the export was to be refused");
    me.expect_equal(refused_export.error().error().acl_code(), code::rt_drv_internal, "the export is refused");
    DeviceMemory memory = std::move(refused_export).error().take_back();
    me.expect(a.read(memory.bytes()) == pattern(4 * KiB), "the memory is back");
    auto key = me.must(export_key(std::move(memory)), "and can be exported now");

    const BarePid b = a.pid_of("B");
    host::fail(acl::Entry::aclrtIpcMemSetImportPid, 1, code::rt_drv_internal);
    a.refused(key.admit(b), injected, "the admission is refused");
    a.send("B", me.must(key.admit(b), "and works now"));
    me.pause_until("B", "imported");

    host::fail(acl::Entry::aclrtIpcMemClose, 1, code::rt_drv_internal);
    auto refused_close = std::move(key).close();
    if (refused_close) me.fail("the close was to be refused");
    me.expect(refused_close.error().kind() == Errc::refused, "the close is refused");
    auto same_key = std::move(refused_close).error().take_back();
    a.send("B", me.must(same_key.admit(b, Slice{10, 20}), "the key is whole: it admits"));
    me.pause_until("B", "closed");
    me.must(me.must(std::move(same_key).close(), "it closes").close(), "and gives its memory back");
    me.expect_equal(a.runtime.parked().objects, 0U, "nothing was parked");
    a.leave();
  });
  story.actor("B", [&](Actor& me) {
    const Party b(me);
    b.introduce_myself_to("A");
    const ReceivedTicket ticket = b.ticket_from("A");
    host::fail(acl::Entry::aclrtIpcMemImportByKey, 1, code::rt_drv_internal);
    b.refused(ImportedMapping::open(ticket, b.device), injected, "the import is refused");
    b.has_given_everything_back();
    ImportedMapping mapping = b.import(ticket);
    me.step("imported");
    ImportedMapping part = b.import(b.ticket_from("A"));
    me.expect(b.read(part.bytes()) == pattern(20, 0, 10), "the slice is readable");
    me.must(std::move(part).close(), "the slice is closed");
    host::fail(acl::Entry::aclrtIpcMemClose, 1, code::rt_drv_internal);
    b.refused(std::move(mapping).close(), injected, "the last close is refused, and reported");
    me.step("closed");
  });
  story.run();
}

TEST_CASE("a key that cannot be closed parks its memory when it is dropped: leaked, but nobody else's") {
  Story story;
  story.actor("A", [](Actor& me) {
    const Party a(me);
    const Reports reports;
    {
      auto key = me.must(export_key(a.allocate(pattern(4 * KiB))), "A exports");
      a.share_with("B", key);
      me.pause_until("B", "imported");
      host::fail(acl::Entry::aclrtIpcMemClose, 1, code::rt_drv_internal);
    }
    me.expect(reports.heard.size() == 1 && reports.heard[0].event == DiagnosticEvent::memory_parked, "it is reported, once");
    me.expect_equal(a.runtime.parked().objects, 1U, "one object is parked");
    me.expect_equal(a.runtime.parked().bytes, 4 * KiB, "with its bytes");
    me.expect_equal(host::counters().allocations, 1U, "the memory is not freed");
    me.step("parked");
    me.pause_until("B", "closed");
  });
  story.actor("B", [](Actor& me) {
    const Party b(me);
    b.introduce_myself_to("A");
    ImportedMapping mapping = b.import(b.ticket_from("A"));
    me.step("imported");
    me.pause_until("A", "parked");
    me.must(mapping.check(), "the memory is there");
    me.expect(b.read(mapping.bytes()) == pattern(4 * KiB), "with its bytes");
    me.must(std::move(mapping).close(), "B closes");
    b.leave();
    me.step("closed");
  });
  story.run();
}
