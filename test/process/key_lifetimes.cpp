// SPDX-License-Identifier: Apache-2.0
// Objects that live longer than they should: than their runtime, than their process's main, than a move out of them.
#include "support/child.hpp"
#include "support/sharing.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

using namespace devshare;
using namespace devshare::test;

namespace {

constexpr std::size_t block = 64 * 1024;

int outlived = 0;

void count_outlived(const Diagnostic& diagnostic, void*) {
  if (diagnostic.event == DiagnosticEvent::runtime_was_gone) ++outlived;
}

// One of each object that there is, with A's memory imported into B.
struct Everything {
  std::optional<DeviceMemory> memory;
  std::optional<SharedMemoryKey<>> key;
  std::optional<ImportedMapping> mapping;
  std::optional<PeerAccess> access;

  Everything(const Party& b, const ReceivedTicket& ticket)
      : memory(b.allocate(block)),
        key(b.me.must(export_key(b.allocate(block)), "B exports")),
        mapping(b.import(ticket)),
        access(b.me.must(PeerAccess::both_ways(b.device, b.other_device(0)), "peer access")) {}
};

// A exports to whoever asks; B does `part` with the ticket.
void with_a_ticket(const std::function<void(Actor&)>& part) {
  Story story;
  story.actor("A", [](Actor& me) {
    const Party a(me);
    auto key = me.must(export_key_unrestricted(a.allocate(pattern(block))), "A exports");
    a.send("B", me.must(key.ticket(), "a ticket"));
    me.pause_until("B", "done");
    me.must(me.must(std::move(key).close(), "closed").close(), "freed");
    a.leave();
  });
  story.actor("B", [&](Actor& me) {
    part(me);
    me.step("done");
  });
  story.run();
}

}  // namespace

TEST_CASE("B005 objects that outlive their runtime call nothing, say so once, and can be closed to learn it") {
  for (const bool by_the_program : {false, true}) {
    for (const bool backwards : {false, true}) {
      CAPTURE(by_the_program, backwards);
      with_a_ticket([&](Actor& me) {
        const Party b(me, 1);
        Everything all(b, b.ticket_from("A"));
        DeviceMemory closed_by_hand = b.allocate(block);
        (void)set_diagnostic_handler({&count_outlived, nullptr});
        if (by_the_program) {
          me.expect_equal(api().aclFinalize(), 0, "the program finalizes under the library");
        } else {
          me.must(b.runtime.finalize(), "the library finalizes");
        }
        host::record_calls(true);
        const auto told = std::move(closed_by_hand).close();
        me.expect(!told && told.error().kind() == Errc::runtime_gone, "an explicit close says that the runtime is gone");
        me.expect(b.runtime.device_count().error().kind() == Errc::runtime_gone, "so does every other call");
        if (backwards) {
          all.access.reset();
          all.mapping.reset();
          all.key.reset();
          all.memory.reset();
        } else {
          all.memory.reset();
          all.key.reset();
          all.mapping.reset();
          all.access.reset();
        }
        me.expect_equal(host::recorded_calls().size(), 0U, "the runtime is not called any more");
        me.expect_equal(outlived, 1, "one report for all of them");
        host::record_calls(false);

        // A new session works, and nothing of the old one is in its way.
        const Party again(me, 1);
        me.must(again.allocate(block).close(), "memory of the new session");
        again.leave();
      });
    }
  }
}

TEST_CASE("B005 devshare does not finalize a runtime that the program has initialised") {
  Story story;
  story.actor("A", [](Actor& me) {
    me.expect_equal(api().aclInit(nullptr), 0, "the program initialises first");
    {
      const Party a(me);
      me.must(a.allocate(block).close(), "devshare works in it");
      me.must(a.runtime.finalize(), "and ends its own part");
    }
    me.expect_equal(api().aclrtSetDevice(0), 0, "the program goes on");
    void* address = nullptr;
    me.expect_equal(api().aclrtMalloc(&address, block, 0), 0, "it allocates");
    me.expect_equal(api().aclrtFree(address), 0, "and frees");
    me.expect_equal(api().aclrtResetDevice(0), 0, "its device count is its own");
    me.expect_equal(api().aclFinalize(), 0, "and ends what it began");
  });
  story.run();
}

TEST_CASE("B009 a ticket that is sent after its key was closed is stale, at once") {
  Story story;
  story.actor("A", [](Actor& me) {
    const Party a(me);
    auto key = me.must(export_key(a.allocate(block)), "exported");
    const auto ticket = me.must(key.admit(a.pid_of("B")), "admitted");
    me.must(me.must(std::move(key).close(), "closed before anything is sent").close(), "freed");
    a.send("B", ticket);
    me.pause_until("B", "refused");
    a.leave();
  });
  story.actor("B", [](Actor& me) {
    const Party b(me);
    b.introduce_myself_to("A");
    const ReceivedTicket ticket = b.ticket_from("A");
    for (int i = 0; i < 2; ++i) {
      const auto refused = ImportedMapping::open(ticket, b.device);
      me.expect(!refused && refused.error().kind() == Errc::stale_token, "the ticket is stale, each time");
    }
    b.leave();
    me.step("refused");
  });
  story.run();
}

TEST_CASE("B009 whatever is asked of an object that holds nothing is `closed`, without a call of the runtime",
          "[any library]") {
  with_a_ticket([](Actor& me) {
    const Party b(me, 1);
    const ReceivedTicket ticket = b.ticket_from("A");
    Everything all(b, ticket);
    const DeviceMemory kept_memory = std::move(*all.memory);
    auto kept_key = std::move(*all.key);
    const ImportedMapping kept_mapping = std::move(*all.mapping);
    const PeerAccess kept_access = std::move(*all.access);

    host::record_calls(true);
    const auto closed = [&](const auto& result, std::string_view what) {
      if (me.expect(!result, what)) {
        me.expect_equal(name_of(detail::plain_error(result.error()).kind()), name_of(Errc::closed), what);
      }
    };
    DeviceMemory& memory = *all.memory;
    me.expect(memory.bytes().empty() && memory.size() == 0, "moved-from memory has no bytes");
    closed(export_key(std::move(memory)), "it is not exported");
    closed(std::move(*all.memory).close(), "nor closed");
    SharedMemoryKey<>& key = *all.key;
    me.expect(key.bytes().empty(), "a moved-from key has no bytes");
    closed(key.admit(BarePid::from_peer_message(1)), "it admits nobody");
    closed(std::move(key).close(), "and is not closed");
    ImportedMapping& mapping = *all.mapping;
    me.expect(mapping.bytes().empty() && mapping.size() == 0, "a moved-from mapping has no bytes");
    closed(mapping.check(), "it has nothing to check");
    closed(std::move(mapping).close(), "nor to close");
    closed(std::move(*all.access).close(), "moved-from peer access gives nothing back");
    me.expect_equal(host::recorded_calls().size(), 0U, "the runtime saw none of it");
    host::record_calls(false);
  });
}

TEST_CASE("B011 a thousand exports in static objects end with their process, in every order of linking") {
  for (const char* program : {DEVSHARE_STATIC_EXPORTS_ABC, DEVSHARE_STATIC_EXPORTS_CBA}) {
    const ChildEnd end = run_program({program});
    INFO(end.in_words());
    CHECK(end.good());
    CHECK(end.output == "1000 exports\n");
  }
}

TEST_CASE("B039 a forked child that imports its parent's ticket is another process", "[any library]") {
  Story story;
  story.actor("A", [](Actor& me) {
    const Party a(me);
    auto key = me.must(export_key_unrestricted(a.allocate(pattern(block))), "exported");
    const auto ticket = me.must(key.ticket(), "a ticket");
    const std::span<const std::byte> bytes(ticket.bytes().data(), ticket_size);
    const ReceivedTicket received = me.must(ReceivedTicket::decode(bytes), "its bytes come back by some wire");
    const auto own = ImportedMapping::open(received, a.device);
    me.expect(!own && own.error().kind() == Errc::self_import, "this process does not import it");
    me.expect_equal(host::counters().key_opens, 0U, "the runtime saw no import");
    const pid_t child = ::fork();
    if (child == 0) {
      const auto imported = [&]() -> Result<bool> {
        DEVSHARE_TRY(runtime, Runtime::open());
        DEVSHARE_TRY(device, runtime.device(DeviceId{0}));
        DEVSHARE_TRY(mapping, ImportedMapping::open(received, device));
        Bytes seen(block);
        DEVSHARE_CHECK(copy_to_host(device, seen, mapping.bytes()));
        DEVSHARE_CHECK(std::move(mapping).close());
        return seen == pattern(block);
      }();
      ::_exit(imported && *imported ? 0 : 1);
    }
    int status = -1;
    me.expect(::waitpid(child, &status, 0) == child && status == 0, "its child does");
    me.must(me.must(std::move(key).close(), "closed").close(), "freed");
    a.leave();
  });
  story.run();
}

TEST_CASE("B041 a ticket of memory that was freed never opens what lies at its address now") {
  Story story;
  story.actor("A", [](Actor& me) {
    const Party a(me);
    auto key = me.must(export_key(a.allocate(pattern(block, 1))), "exported");
    const BarePid b = a.pid_of("B");
    const auto old_ticket = me.must(key.admit(b), "admitted");
    const void* const address = address_of(key.bytes());
    me.must(me.must(std::move(key).close(), "closed").close(), "freed");
    DeviceMemory memory = a.allocate(pattern(block, 2));
    me.expect(address_of(memory.bytes()) == address, "the address is used again");
    auto new_key = me.must(export_key(std::move(memory)), "and exported");
    const auto new_ticket = me.must(new_key.admit(b), "to the same process");
    a.send("B", old_ticket);
    a.send("B", new_ticket);
    me.pause_until("B", "closed");
    me.must(me.must(std::move(new_key).close(), "closed").close(), "freed");
    a.leave();
  });
  story.actor("B", [](Actor& me) {
    const Party b(me);
    b.introduce_myself_to("A");
    const ReceivedTicket old_ticket = b.ticket_from("A");
    ImportedMapping mapping = b.import(b.ticket_from("A"));
    const auto refused = ImportedMapping::open(old_ticket, b.device);
    me.expect(!refused && refused.error().kind() == Errc::stale_token, "the old ticket is stale");
    me.expect(b.read(mapping.bytes()) == pattern(block, 2), "the new one opens the new memory");
    me.must(std::move(mapping).close(), "closed");
    b.leave();
    me.step("closed");
  });
  story.run();
}

TEST_CASE("B045 each object is released once, however it was moved, swapped or assigned to itself") {
  with_a_ticket([](Actor& me) {
    const Party b(me, 1);
    const ReceivedTicket ticket = b.ticket_from("A");
    // After each release a descriptor of ours takes the number that became free: whoever closes twice closes it.
    std::vector<int> victims;
    const auto recycle = [&] { victims.push_back(::dup(0)); };
    const auto shuffle = [&]<class T>(T first, T second) {
      end_in_other_hands(std::move(first), std::move(second), recycle);
    };
    host::record_calls(true);
    shuffle(b.allocate(block), b.allocate(block));
    me.expect_equal(calls_of(acl::Entry::aclrtFree), 2U, "two blocks, two frees");
    host::record_calls(true);
    shuffle(me.must(export_key(b.allocate(block)), "exported"), me.must(export_key(b.allocate(block)), "exported"));
    me.expect(calls_of(acl::Entry::aclrtFree) == 2 && calls_of(acl::Entry::aclrtIpcMemClose) == 2, "two keys");
    host::record_calls(true);
    shuffle(b.import(ticket), b.import(ticket));
    me.expect_equal(calls_of(acl::Entry::aclrtIpcMemImportByKey), 1U, "two mappings of one key are one import");
    me.expect_equal(calls_of(acl::Entry::aclrtIpcMemClose), 1U, "and one close");
    host::record_calls(true);
    const auto access = [&] { return me.must(PeerAccess::both_ways(b.device, b.other_device(0)), "peer access"); };
    shuffle(access(), access());
    me.expect_equal(calls_of(acl::Entry::aclrtDeviceDisablePeerAccess), 4U, "two grants of two directions");
    host::record_calls(false);
    for (const int victim : victims) me.expect(::close(victim) == 0, "nobody closed a stranger's descriptor");
    b.leave();
  });
}

TEST_CASE("B080 memory is whole before anybody can ask for it") {
  Story story;
  story.actor("A", [](Actor& me) {
    const Party a(me);
    host::delay(acl::Entry::aclrtIpcMemGetExportKey, 300);
    auto key = me.must(export_key(a.allocate(pattern(block))), "the export takes its time");
    host::clear();
    a.share_with("B", key);
    me.pause_until("B", "closed");
    me.must(me.must(std::move(key).close(), "closed").close(), "freed");
    a.leave();
  });
  story.actor("B", [](Actor& me) {
    const Party b(me);
    b.introduce_myself_to("A");
    // There is nothing to poll for: the ticket is the first that can be known of the memory, and then it is there.
    ImportedMapping mapping = b.import(b.ticket_from("A"));
    me.expect_equal(mapping.size(), block, "its size is final");
    me.expect(b.read(mapping.bytes()) == pattern(block), "so are its bytes");
    me.must(std::move(mapping).close(), "closed");
    b.leave();
    me.step("closed");
  });
  story.run();
}
