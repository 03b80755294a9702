// SPDX-License-Identifier: Apache-2.0
// Calls of the runtime that fail under the typed layer: what the caller is told, and what is left.
#include "support/reports.hpp"
#include "support/sharing.hpp"

#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

using namespace devshare;
using namespace devshare::test;

namespace {

constexpr std::size_t block = 64 * 1024;

// A stage of sharing by key, the call that it hangs on, and how to make it.
struct Stage {
  Operation operation;
  acl::Entry call;
  std::function<std::optional<Error>(const Party&)> attempt;  // the error; none when it succeeded
};

template <class R>
std::optional<Error> error_of(const R& result) {
  if (result) return std::nullopt;
  return detail::plain_error(result.error());
}

std::vector<Stage> stages() {
  using acl::Entry;
  return {
      {Operation::bare_pid, Entry::aclrtDeviceGetBareTgid, [](const Party& a) { return error_of(a.runtime.bare_pid()); }},
      {Operation::allocate, Entry::aclrtMalloc,
       [](const Party& a) { return error_of(DeviceMemory::allocate(a.device, block)); }},
      {Operation::copy_to_device, Entry::aclrtMemcpy,
       [](const Party& a) {
         DeviceMemory memory = a.allocate(block);
         return error_of(copy_to_device(a.device, memory.bytes(), pattern(block)));
       }},
      {Operation::copy_to_host, Entry::aclrtMemcpy,
       [](const Party& a) {
         DeviceMemory memory = a.allocate(block);
         Bytes bytes(block);
         return error_of(copy_to_host(a.device, bytes, memory.bytes()));
       }},
      {Operation::fill, Entry::aclrtMemset,
       [](const Party& a) {
         DeviceMemory memory = a.allocate(block);
         return error_of(fill(a.device, memory.bytes(), std::byte{1}));
       }},
      {Operation::enable_peer_access, Entry::aclrtDeviceEnablePeerAccess,
       [](const Party& a) { return error_of(PeerAccess::both_ways(a.device, a.other_device(1))); }},
      {Operation::can_access_peer, Entry::aclrtDeviceCanAccessPeer,
       [](const Party& a) { return error_of(can_access_peer(a.device, a.other_device(1))); }},
      {Operation::export_key, Entry::aclrtIpcMemGetExportKey,
       [](const Party& a) { return error_of(export_key(a.allocate(block))); }},
      {Operation::admit, Entry::aclrtIpcMemSetImportPid,
       [](const Party& a) {
         auto key = a.me.must(export_key(a.allocate(block)), "exported");
         return error_of(key.admit(a.own_pid()));
       }},
  };
}

}  // namespace

TEST_CASE("B083 an injected failure of any stage names the stage, the code and the ends, whatever the code") {
  alone([](const Party& a) {
    (void)a.other_device(1);
    for (const Stage& stage : stages()) {
      std::vector<std::string> texts;
      for (const acl::aclError injected : {107000, 107002, 207000, 207001, 207006, 507899, 123456}) {
        host::fail(stage.call, 1, injected);
        const std::optional<Error> error = stage.attempt(a);
        host::clear();
        if (!a.me.expect(error.has_value(), fmt::format("{} is refused", name_of(stage.operation)))) continue;
        a.me.expect(error->operation() == stage.operation && error->entry() == stage.call, "the error names its stage");
        a.me.expect_equal(error->acl_code(), injected, "it keeps the code");
        a.me.expect(error->reason() == Reason::injected, "and says that it was asked for");
        const std::string text = to_string(*error);
        a.me.expect(text.find(name_of(stage.operation)) != text.npos && text.find(std::to_string(injected)) != text.npos &&
                        text.find(name_of(stage.call)) != text.npos,
                    fmt::format("the text says all of it: {}", text));
        if (stage.operation != Operation::bare_pid) a.me.expect(error->detail().device == 0, "and on which device");
        for (const std::string& other : texts) a.me.expect(other != text, "another code is another text");
        texts.push_back(text);
      }
      // The stage works when nothing is injected, but for admitting oneself, which no runtime does.
      const std::optional<Error> error = stage.attempt(a);
      a.me.expect(!error.has_value() || stage.operation == Operation::admit,
                  fmt::format("{} works again", name_of(stage.operation)));
    }
  });
}

TEST_CASE("B085 an import that fails for want of memory leaves no half object, and works when tried again") {
  Story story;
  story.actor("A", [](Actor& me) {
    const Party a(me);
    auto key = me.must(export_key(a.allocate(pattern(block))), "exported");
    a.share_with("B", key);
    me.pause_until("B", "closed");
    me.must(me.must(std::move(key).close(), "closed").close(), "freed");
    a.leave();
  });
  story.actor("B", [](Actor& me) {
    const Party b(me);
    b.introduce_myself_to("A");
    const ReceivedTicket ticket = b.ticket_from("A");
    const host::Counters before = host::counters();
    host::fail(acl::Entry::aclrtIpcMemImportByKey, 1, acl::code::rt_memory_allocation);
    const auto refused = ImportedMapping::open(ticket, b.device);
    me.expect(!refused && refused.error().kind() == Errc::out_of_memory, "the caller is told");
    me.expect(host::counters() == before, "nothing is left of the attempt");
    ImportedMapping mapping = b.import(ticket);
    me.expect(b.read(mapping.bytes()) == pattern(block), "the second attempt is as good as a first");
    me.must(std::move(mapping).close(), "closed");
    b.leave();
    me.step("closed");
  });
  story.run();
}

TEST_CASE("B085 a close that fails is told, and the other end is none the worse") {
  Story story;
  story.actor("A", [](Actor& me) {
    const Party a(me);
    auto key = me.must(export_key(a.allocate(pattern(block))), "exported");
    a.share_with("B", key);
    me.pause_until("B", "closed");
    host::fail(acl::Entry::aclrtIpcMemClose, 1, acl::code::rt_drv_internal);
    auto refused = std::move(key).close();
    if (me.expect(!refused, "the close is refused")) {
      me.expect(refused.error().kind() == Errc::refused && refused.error().error().operation() == Operation::close_export,
                "as a close of an export");
      auto again = std::move(refused).error().take_back();
      me.must(me.must(std::move(again).close(), "the export that came back closes").close(), "and gives its memory back");
    }
    a.leave();
  });
  story.actor("B", [](Actor& me) {
    const Party b(me);
    b.introduce_myself_to("A");
    ImportedMapping mapping = b.import(b.ticket_from("A"));
    host::fail(acl::Entry::aclrtIpcMemClose, 1, acl::code::rt_drv_internal);
    auto closed = std::move(mapping).close();
    if (me.expect(!closed, "the close is refused")) {
      const Error& error = closed.error().error();
      me.expect(error.operation() == Operation::close_import && error.acl_code() == 507899, "the caller is told");
      me.must(std::move(closed).error().take_back().close(), "and what comes back closes");
    }
    b.leave();
    me.step("closed");
  });
  story.run();
}

TEST_CASE("B089 a release that fails in a destructor is reported once, with the memory it concerns") {
  alone([](const Party& a) {
    const void* address = nullptr;
    Reports reports;
    {
      DeviceMemory memory = a.allocate(block);
      address = address_of(memory.bytes());
      host::fail(acl::Entry::aclrtFree, 1, acl::code::rt_drv_internal);
    }
    if (a.me.expect_equal(reports.heard.size(), 1U, "the hook is called once")) {
      const Diagnostic& heard = reports.heard[0];
      a.me.expect(heard.event == DiagnosticEvent::close_failed && heard.object == address, "with the object's identity");
      a.me.expect(heard.error.acl_code() == 507899 && heard.error.operation() == Operation::free_memory, "and its code");
    }
    // The injected code kept the memory from being freed; nobody else will.
    a.call_succeeds(api().aclrtSetDevice(0), "set");
    a.call_succeeds(api().aclrtFree(const_cast<void*>(address)), "the memory was still there");
    a.call_succeeds(api().aclrtResetDevice(0), "reset");
  });
}

#if defined(__cpp_exceptions)
TEST_CASE("B089 a failing release does not end a program that is unwinding, nor does a hook that throws") {
  alone([](const Party& a) {
    static int calls = 0;
    const DiagnosticHandler before = set_diagnostic_handler({[](const Diagnostic&, void*) {
                                                               ++calls;
                                                               throw std::string("thrown by the hook");
                                                             },
                                                             nullptr});
    const void* address = nullptr;
    std::string caught;
    try {
      DeviceMemory memory = a.allocate(block);
      address = address_of(memory.bytes());
      host::fail(acl::Entry::aclrtFree, 1, acl::code::rt_drv_internal);
      throw std::string("thrown by the program");
    } catch (const std::string& what) {
      caught = what;
    }
    (void)set_diagnostic_handler(before);
    a.me.expect_equal(caught, "thrown by the program", "the program's own exception arrives");
    a.me.expect_equal(calls, 1, "the hook was called once");
    a.call_succeeds(api().aclrtSetDevice(0), "set");
    a.call_succeeds(api().aclrtFree(const_cast<void*>(address)), "the memory was still there");
    a.call_succeeds(api().aclrtResetDevice(0), "reset");
  });
}
#endif

TEST_CASE("B093 threads that never set a device may do everything, and are left as they were") {
  Story story;
  story.actor("A", [](Actor& me) {
    const Party a(me);
    auto key = me.must(export_key_unrestricted(a.allocate(pattern(block))), "exported");
    a.send("B", me.must(key.ticket(), "a ticket"));
    me.pause_until("B", "closed");
    me.must(me.must(std::move(key).close(), "closed").close(), "freed");
    a.leave();
  });
  story.actor("B", [](Actor& me) {
    const Party b(me, 1);
    const Device other = b.other_device(0);
    const ReceivedTicket ticket = b.ticket_from("A");
    host::record_calls(true);
    std::vector<std::thread> threads;
    for (int i = 0; i < 3; ++i) {
      threads.emplace_back([&] {
        std::int32_t current = -1;
        me.expect_equal(api().aclrtGetDevice(&current), acl::code::rt_context_null, "the thread has no device");
        ImportedMapping mapping = me.must(ImportedMapping::open(ticket, other), "it imports all the same");
        Bytes bytes(block);
        me.must(copy_to_host(other, bytes, mapping.bytes()), "and copies");
        me.expect(bytes == pattern(block), "what is there");
        me.must(std::move(mapping).close(), "and closes");
        me.expect_equal(api().aclrtGetDevice(&current), acl::code::rt_context_null, "and still has none");
      });
    }
    for (std::thread& thread : threads) thread.join();
    const std::size_t sets = calls_of(acl::Entry::aclrtSetDevice);
    me.expect(sets >= 3, "the library set the device");
    me.expect_equal(calls_of(acl::Entry::aclrtResetDevice), sets, "and reset it as often (R3)");

    // A thread on another device gets that one back.
    me.must(b.device.make_current(), "this thread is on device 1");
    DeviceMemory memory = me.must(DeviceMemory::allocate(other, block), "allocates on device 0");
    std::int32_t current = -1;
    me.expect(api().aclrtGetDevice(&current) == 0 && current == 1, "and is still on device 1");
    me.must(std::move(memory).close(), "freed");
    me.expect(api().aclrtGetDevice(&current) == 0 && current == 1, "and is still on device 1");
    me.expect_equal(api().aclrtResetDevice(1), 0, "given back");
    host::record_calls(false);
    b.leave();
    me.step("closed");
  });
  story.run();
}

TEST_CASE("a key that cannot be closed keeps its memory, and the runtime says so") {
  Story story;
  story.actor("A", [](Actor& me) {
    const Party a(me);
    Reports reports;
    {
      auto key = me.must(export_key(a.allocate(pattern(block))), "exported");
      host::fail(acl::Entry::aclrtIpcMemClose, 1, acl::code::rt_drv_internal);
    }
    me.expect(reports.heard.size() == 1 && reports.heard[0].event == DiagnosticEvent::memory_parked, "it is reported");
    const Parked parked = a.runtime.parked();
    me.expect(parked.objects == 1 && parked.bytes == block, "and can be asked for");
    me.expect_equal(host::counters().allocations, 1U, "the memory was not freed under a live key (R22)");
    me.must(a.runtime.finalize(), "the end of the session takes what is left");
    me.expect(host::counters() == host::Counters{}, "all of it");
  });
  story.run();
}
