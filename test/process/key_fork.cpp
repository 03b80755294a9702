// SPDX-License-Identifier: Apache-2.0
// Sharing and fork (R4, B064): in a forked child every object of its parent is inert, and the child may begin anew.
#include "support/child.hpp"
#include "support/sanitizers.hpp"
#include "support/sharing.hpp"

#include <unistd.h>

#include <csignal>
#include <optional>
#include <string>
#include <utility>
#include <vector>

using namespace devshare;
using namespace devshare::test;

#ifdef DEVSHARE_TEST_THREAD_SANITIZER
// A child that begins anew starts a thread, after a fork of a process that has one.
extern "C" const char* __tsan_default_options() { return "die_after_fork=0"; }
#endif

namespace {

constexpr std::size_t KiB = 1024;

template <class R>
void demand_forked(const R& result, const char* what, int line = __builtin_LINE()) {
  const std::string actual = result ? "success" : in_words(refusal_of(detail::plain_error(result.error())));
  const std::string sentence = fmt::format("{}: {} instead of forked", what, actual);
  demand(!result && refusal_of(detail::plain_error(result.error())) == Refusal{Errc::forked}, sentence.c_str(),
         __builtin_FILE(), line);
}

// A call of the runtime in a child is refused, and leaves a text behind.
void demand_no_call_was_made(int line = __builtin_LINE()) {
  const char* text = api().aclGetRecentErrMsg();
  const std::string sentence = fmt::format("the runtime was called: {}", text != nullptr ? text : "");
  demand(text == nullptr, sentence.c_str(), __builtin_FILE(), line);
}

// For the beginning of a child: from here on nothing may be reported, and no text of the parent's is left.
void expect_silence() {
  static_cast<void>(api().aclGetRecentErrMsg());
  set_diagnostic_handler({[](const Diagnostic& diagnostic, void*) {
                            demand(false, fmt::format("a diagnostic: {}", diagnostic.error).c_str());
                          },
                          nullptr});
}

template <class M>
std::vector<std::byte> message_of(const Ticket<M>& ticket) {
  return {ticket.bytes().data(), ticket.bytes().data() + ticket_size};
}

}  // namespace

TEST_CASE("R4 B064 in a child of the exporter its objects are inert, and to the importers nothing has happened") {
  Story story;
  story.actor("A", [](Actor& me) {
    const Party a(me);
    std::optional key = me.must(export_key(a.allocate(pattern(4 * KiB))), "A exports");
    std::optional everybody = me.must(export_key_unrestricted(a.allocate(4 * KiB)), "and to everybody");
    std::optional<DeviceMemory> memory = a.allocate(pattern(4 * KiB, 2));
    std::optional access = me.must(PeerAccess::both_ways(a.device, a.other_device(1)), "and has peer access");
    a.share_with("B", *key);
    me.pause_until("B", "imported");
    const host::Counters before = host::counters();

    const auto use_everything = [&] {
      expect_silence();
      Bytes bytes(4 * KiB);
      demand_forked(a.device.make_current(), "make_current");
      demand_forked(a.runtime.device_count(), "device_count");
      demand_forked(a.runtime.device(DeviceId{0}), "device");
      demand_forked(a.runtime.finalize(), "finalize");
      demand_forked(DeviceMemory::allocate(a.device, 1), "allocate");
      demand_forked(copy_to_host(a.device, bytes, memory->bytes()), "copy_to_host");
      demand_forked(copy_to_device(a.device, memory->bytes(), bytes), "copy_to_device");
      demand_forked(fill(a.device, memory->bytes(), std::byte{1}), "fill");
      demand_forked(a.device.memory_info(), "memory_info");
      demand_forked(PeerAccess::both_ways(a.device, a.device), "both_ways");
      demand_forked(key->admit(BarePid::from_peer_message(1)), "admit");
      demand_forked(everybody->ticket(), "ticket");
      demand_forked(std::move(*access).close(), "the close of peer access");
      auto refused = std::move(*key).close();
      demand_forked(refused, "the close of a key");
      auto same = std::move(refused).error().take_back();
      demand_forked(same.admit(BarePid::from_peer_message(1)), "admit by the key that came back");
      auto refused_export = export_key(std::move(*memory));
      demand_forked(refused_export, "export");
      DeviceMemory taken_back = std::move(refused_export).error().take_back();
      demand_forked(std::move(taken_back).close(), "the close of memory");
      demand_no_call_was_made();
    };
    const ChildEnd used = in_child(use_everything);
    me.expect(used.good(), "a child that uses everything: " + used.in_words());
    const ChildEnd destroyed = in_child([&] {
      expect_silence();
      key.reset();
      everybody.reset();
      memory.reset();
      access.reset();
      demand_no_call_was_made();
    });
    me.expect(destroyed.good(), "a child that destroys everything: " + destroyed.in_words());

    me.expect(host::counters() == before, "A has what it had: " + host::in_words(host::counters()));
    me.expect(a.read(memory->bytes()) == pattern(4 * KiB, 2), "with its bytes");
    me.step("children ended");
    a.share_with("C", *key);
    me.pause_until("B", "closed");
    me.pause_until("C", "closed");
    key.reset();
    everybody.reset();
    memory.reset();
    access.reset();
    a.leave();
  });
  story.actor("B", [](Actor& me) {
    const Party b(me);
    b.introduce_myself_to("A");
    ImportedMapping mapping = b.import(b.ticket_from("A"));
    me.step("imported");
    me.pause_until("A", "children ended");
    me.must(mapping.check(), "the memory is there");
    me.expect(b.read(mapping.bytes()) == pattern(4 * KiB), "with its bytes");
    me.must(std::move(mapping).close(), "B closes");
    b.leave();
    me.step("closed");
  });
  story.actor("C", [](Actor& me) {
    const Party c(me);
    c.introduce_myself_to("A");
    ImportedMapping mapping = c.import(c.ticket_from("A"));
    me.expect(c.read(mapping.bytes()) == pattern(4 * KiB), "A's key can still be imported");
    me.must(std::move(mapping).close(), "C closes");
    c.leave();
    me.step("closed");
  });
  story.run();
}

TEST_CASE("R4 B064 in a child of an importer its mappings are inert, and the importer keeps them") {
  for (const std::int32_t device : {0, 1}) {
    INFO("on device " << device);
    Story story;
    story.actor("A", [](Actor& me) {
      const Party a(me);
      auto key = me.must(export_key(a.allocate(pattern(4 * KiB))), "A exports");
      a.share_with("B", key);
      me.pause_until("B", "closed");
    });
    story.actor("B", [&](Actor& me) {
      const Party b(me, device);
      b.introduce_myself_to("A");
      const ReceivedTicket ticket = b.ticket_from("A");
      std::optional<ImportedMapping> mapping = b.import(ticket);
      std::optional<ImportedMapping> same = b.import(ticket);
      const host::Counters before = host::counters();
      const ChildEnd used = in_child([&] {
        expect_silence();
        Bytes bytes(4 * KiB);
        demand_forked(mapping->check(), "check");
        demand_forked(copy_to_host(b.device, bytes, mapping->bytes()), "copy_to_host");
        demand_forked(ImportedMapping::open(ticket, b.device), "open");
        const auto seen = host::view(mapping->bytes());
        demand(!seen && seen.error() == Errc::forked, "a view of it is forked");
        demand_forked(std::move(*mapping).close(), "the close of a mapping");
        demand_no_call_was_made();
      });
      me.expect(used.good(), "a child that uses its mappings: " + used.in_words());
      const ChildEnd destroyed = in_child([&] {
        expect_silence();
        mapping.reset();
        same.reset();
        demand_no_call_was_made();
      });
      me.expect(destroyed.good(), "a child that destroys its mappings: " + destroyed.in_words());
      me.expect(host::counters() == before, "B has what it had: " + host::in_words(host::counters()));
      mapping.reset();
      me.must(same->check(), "the memory is there");
      const std::span<std::byte> seen = b.view(same->bytes());
      me.expect(Bytes(seen.begin(), seen.end()) == pattern(4 * KiB), "with its bytes");
      same.reset();
      b.leave();
      me.step("closed");
    });
    story.run();
  }
}

TEST_CASE("B064 a child that opens the runtime anew exports on its own, beside its parent and after it") {
  if (sees_races()) DEVSHARE_SKIP("ThreadSanitizer lets the child of a threaded process start no thread");
  Story story;
  story.actor("A", [](Actor& me) {
    const Party a(me);
    auto key = me.must(export_key(a.allocate(pattern(4 * KiB, 1))), "A exports");
    DeviceMemory memory = a.allocate(4 * KiB);
    const BarePid b = a.pid_of("B");
    a.send("B", me.must(key.admit(b), "B is admitted"));
    me.pause_until("B", "imported from A");
    const ChildEnd end = in_child([&] {
      const Party child(me);
      demand_forked(key.admit(b), "the parent's key, after the child has begun anew");
      Bytes bytes(4 * KiB);
      demand_forked(copy_to_host(a.device, bytes, memory.bytes()), "a copy by the parent's device");
      demand(host::counters() == host::Counters{}, "the child begins with nothing");
      auto own = me.must(export_key(child.allocate(pattern(4 * KiB, 2))), "the child exports");
      child.send("B", me.must(own.admit(b), "B is admitted by the child"));
      me.pause_until("B", "imported from the child");
      demand_forked(std::move(memory).close(), "the parent's memory");
      auto refused = std::move(key).close();
      demand_forked(refused, "the parent's key");
      me.pause_until("B", "closed the child's");
      me.must(me.must(std::move(own).close(), "the child closes").close(), "and frees");
      child.leave();
    });
    me.expect(end.good(), "the child: " + end.in_words());
    me.step("child ended");
    me.pause_until("B", "closed");
    me.must(std::move(memory).close(), "A's memory is A's");
    me.must(me.must(std::move(key).close(), "A closes").close(), "and frees");
    me.expect_equal(host::bytes_in_use(0), 0U, "the device is empty");
    a.leave();
  });
  story.actor("B", [](Actor& me) {
    const Party b(me);
    b.introduce_myself_to("A");
    const ReceivedTicket of_parent = b.ticket_from("A");
    ImportedMapping from_parent = b.import(of_parent);
    me.step("imported from A");
    const ReceivedTicket of_child = b.ticket_from("A");
    me.expect(!(of_parent.exporter() == of_child.exporter()), "the two tickets have two exporters");
    ImportedMapping from_child = b.import(of_child);
    me.expect(b.read(from_parent.bytes()) == pattern(4 * KiB, 1), "the parent's bytes");
    me.expect(b.read(from_child.bytes()) == pattern(4 * KiB, 2), "and the child's");
    me.step("imported from the child");
    me.must(std::move(from_child).close(), "B closes the child's");
    me.step("closed the child's");
    me.pause_until("A", "child ended");
    b.refused(ImportedMapping::open(of_child, b.device),
              {Errc::exporter_gone, code::rt_drv_internal, Reason::exporter_gone}, "the child has ended");
    me.must(from_parent.check(), "the parent has not");
    me.must(std::move(from_parent).close(), "B closes");
    b.leave();
    me.step("closed");
  });
  story.run();
}

TEST_CASE("B039 a forked child that imports its parent's ticket counts as another process") {
  Story story;
  story.actor("A", [](Actor& me) {
    const Party a(me);
    auto key = me.must(export_key_unrestricted(a.allocate(pattern(4 * KiB))), "A exports");
    const auto ticket = message_of(me.must(key.ticket(), "it has a ticket"));
    const auto received = me.must(ReceivedTicket::decode(ticket), "well-formed");
    a.refused(ImportedMapping::open(received, a.device), {Errc::self_import}, "its own");
    const ChildEnd end = in_child([&] {
      const Party child(me, 1);
      ImportedMapping mapping = child.import(received);
      const std::span<std::byte> seen = child.view(mapping.bytes());
      demand(Bytes(seen.begin(), seen.end()) == pattern(4 * KiB), "the child sees its parent's bytes");
      seen[0] = std::byte{0xee};
      me.must(std::move(mapping).close(), "the child closes");
      child.leave();
    });
    me.expect(end.good(), "the child: " + end.in_words());
    me.expect(a.read(key.bytes().first(1))[0] == std::byte{0xee}, "A sees what its child wrote");
    me.must(me.must(std::move(key).close(), "A closes").close(), "and frees");
    a.leave();
  });
  story.run();
}

TEST_CASE("B064 a child of a child: each generation has its own runtime, and the older ones' objects stay inert") {
  Story story;
  story.actor("A", [](Actor& me) {
    const Party a(me);
    DeviceMemory of_a = a.allocate(4 * KiB);
    const ChildEnd end = in_child([&] {
      const Party child(me);
      DeviceMemory of_child = child.allocate(4 * KiB);
      const ChildEnd inner = in_child([&] {
        Bytes bytes(4 * KiB);
        demand_forked(copy_to_host(a.device, bytes, of_a.bytes()), "the grandparent's, before the grandchild begins");
        demand_forked(copy_to_host(child.device, bytes, of_child.bytes()), "the parent's");
        const Party grandchild(me);
        demand_forked(copy_to_host(a.device, bytes, of_a.bytes()), "the grandparent's, after it has begun");
        demand_forked(copy_to_host(child.device, bytes, of_child.bytes()), "the parent's");
        DeviceMemory own = grandchild.allocate(pattern(4 * KiB));
        demand(grandchild.read(own.bytes()) == pattern(4 * KiB), "its own is readable");
        me.must(std::move(own).close(), "and freed");
        grandchild.leave();
      });
      demand(inner.good(), inner.in_words().c_str());
      me.must(std::move(of_child).close(), "the child frees");
      child.leave();
    });
    me.expect(end.good(), "the child: " + end.in_words());
    me.must(std::move(of_a).close(), "A frees");
    a.leave();
  });
  story.run();
}

TEST_CASE("R18 B064 an exporter's death is seen although a child of it lives on") {
  int ends[2] = {};
  REQUIRE(::pipe(ends) == 0);
  Story story;
  story.actor("A", [&](Actor& me) {
    const Party a(me);
    auto key = me.must(export_key(a.allocate(pattern(4 * KiB))), "A exports");
    if (::fork() == 0) {  // outlives A, until the test closes the other end
      ::close(ends[1]);
      char nothing = 0;
      ::_exit(static_cast<int>(::read(ends[0], &nothing, 1)));
    }
    a.share_with("B", key);
    me.pause_until("B", "imported");
    me.step("about to die");
  });
  story.actor("B", [](Actor& me) {
    const Party b(me);
    b.introduce_myself_to("A");
    const ReceivedTicket ticket = b.ticket_from("A");
    ImportedMapping mapping = b.import(ticket);
    me.step("imported");
    me.pause_until_ended("A");
    b.refused(mapping.check(), {Errc::exporter_gone}, "B is told");
    me.must(std::move(mapping).close(), "B closes");
    b.refused(ImportedMapping::open(ticket, b.device),
              {Errc::exporter_gone, code::rt_drv_internal, Reason::exporter_gone}, "nobody serves the key");
    me.expect_equal(host::bytes_in_use(0), 0U, "the device is empty");
    b.leave();
  });
  story.kill("A", at("about to die"));
  story.run();
  ::close(ends[0]);
  ::close(ends[1]);
}
