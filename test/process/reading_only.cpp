// SPDX-License-Identifier: Apache-2.0
// B107: importers that may read only, so that a faulty one cannot damage the data. ACL has no such import; devshare's
// tickets and types do, and on the host runtime the kernel enforces it.
#include "support/sharing.hpp"

#include <sys/mman.h>

#include <cerrno>
#include <csignal>
#include <cstdint>
#include <utility>

using namespace devshare;
using namespace devshare::test;

namespace {

constexpr std::size_t size = 2 * 1024 * 1024;

template <class Held>
void end(Actor& me, Held held) {
  me.must(std::move(held).close(), "it ends");
}

// A exports by K and gives B a ticket for reading, then writes while B reads.
template <class K>
void exporter(Actor& me) {
  const Party a(me, 0, {{"PROFILE", "a3"}});  // which has tokens of every kind
  auto exported = me.must(export_for<K>(me.must(allocate_for<K>(a.device, size), "memory")), "A exports");
  a.write(exported.bytes(), pattern(size, 1));
  a.send("B", me.must(exported.admit(a.pid_of("B"), {}, AccessMode::read_only), "B may read"));
  me.pause_until("B", "read");
  a.write(exported.bytes(), pattern(size, 2));
  me.step("written");
  me.pause_until_ended("B");
  me.expect(a.read(exported.bytes()) == pattern(size, 2), "no byte of it is anybody else's");
  end(me, me.must(std::move(exported).close(), "A ends"));
}

}  // namespace

TEMPLATE_TEST_CASE("B107 a ticket for reading opens for reading only, and the kernel keeps it so", "", by_key, v1, v2,
                   fabric) {
  Story story;
  story.actor("A", &exporter<TestType>);
  story.actor("B", [](Actor& me) {
    const Party b(me, 0, {{"PROFILE", "a3"}});
    b.introduce_myself_to("A");
    const ReceivedTicket ticket = b.ticket_from("A");
    me.expect(ticket.access() == AccessMode::read_only, "the ticket says so");
    b.refused(ImportedMapping::open(ticket, b.device), {Errc::access_mismatch}, "it is not for writing");
    auto opened = ImportedConstMapping::open(ticket, b.device);
    const ImportedConstMapping mapping = me.must(std::move(opened), "it is for reading");
    me.expect(mapping.access_enforced(), "and something sees to that");
    me.expect(b.read(mapping.bytes()) == pattern(size, 1), "B reads");
    const std::span<const std::byte> seen = me.must(host::view(mapping.bytes()), "a kernel reads");
    me.step("read");
    me.pause_until("A", "written");
    me.expect(Bytes(seen.begin(), seen.end()) == pattern(size, 2), "and sees what A writes meanwhile");

    void* const inside = const_cast<std::byte*>(seen.data());
    me.expect(::mprotect(inside, 4096, PROT_READ | PROT_WRITE) != 0 && errno == EACCES, "the kernel gives no more");
    me.must(b.device.make_current(), "the device is current");
    const std::byte one{1};
    void* const address = const_cast<std::byte*>(mapping.bytes().data().address());
    b.call_refused(api().aclrtMemcpy(address, 1, &one, 1, acl::memcpy_kind::host_to_device), code::rt_drv_internal,
                   Reason::read_only, "nor does the runtime copy into it");
  });
  story.run();
}

TEMPLATE_TEST_CASE("B107 who writes all the same is ended by the kernel, and the data is as it was", "", by_key, v1, v2,
                   fabric) {
  Story story;
  story.actor("A", &exporter<TestType>);
  story.actor("B", [](Actor& me) {
    const Party b(me, 0, {{"PROFILE", "a3"}});
    b.introduce_myself_to("A");
    const ImportedConstMapping mapping =
        me.must(ImportedConstMapping::open(b.ticket_from("A"), b.device), "it is for reading");
    const auto seen = me.must(host::view(mapping.bytes()), "a view");
    me.step("read");
    me.pause_until("A", "written");
    ::signal(SIGSEGV, SIG_DFL);  // a sanitizer would turn it into an exit
    const_cast<volatile std::byte&>(seen[0]) = std::byte{0xff};
  });
  story.ends("B", by_signal(SIGSEGV));
  story.run();
}

TEST_CASE("B107 one import serves all objects of a process: what is open for reading is not opened for writing beside") {
  Story story;
  story.actor("A", [](Actor& me) {
    const Party a(me);
    auto token = me.must(export_handle<v2>(a.map(pattern(size))), "A exports");
    a.share_with("B", token);
    me.pause_until("B", "closed");
    end(me, me.must(std::move(token).close(), "A ends"));
    a.leave();
  });
  story.actor("B", [](Actor& me) {
    const Party b(me);
    b.introduce_myself_to("A");
    const ReceivedTicket ticket = b.ticket_from("A");
    ImportedConstMapping reader = me.must(ImportedConstMapping::open(ticket, b.device), "for reading, by its own wish");
    me.expect(reader.access_enforced(), "enforced");
    b.refused(ImportedMapping::open(ticket, b.device), {Errc::access_mismatch}, "not for writing beside it");
    end(me, std::move(reader));
    ImportedMapping writer = b.import(ticket);
    ImportedConstMapping beside = me.must(ImportedConstMapping::open(ticket, b.device), "for reading beside a writer");
    me.expect(!beside.access_enforced(), "is by its type only");
    end(me, std::move(writer));
    end(me, std::move(beside));
    b.leave();
    me.step("closed");
  });
  story.run();
}
