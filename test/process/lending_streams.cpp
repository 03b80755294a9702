// SPDX-License-Identifier: Apache-2.0
// An offer, and a generation, is for finished data: what a stream is still writing is offered once it has (B078).
#include "lending.hpp"
#include "support/locked_bytes.hpp"

#include <devshare/stream.hpp>
#include <devshare/stream_copy.hpp>

using namespace devshare;
using namespace devshare::test;

namespace {

constexpr std::size_t size = 64 * 1024;

}  // namespace

TEST_CASE("what a stream is still writing is lent, and published, when it has been written (B078)", "[any library]") {
  Story story;
  const Endpoint endpoint = Endpoint::path(story.file("lender"));
  story.actor("A", [&](Actor& me) {
    const Party a(me);
    {
      Stream stream = me.must(Stream::create(a.device), "a stream is made");
      const LockedBytes first(a, pattern(size, 1));
      const LockedBytes second(a, pattern(size, 2));
      Lender lender = me.must(Lender::at(a.runtime, endpoint), "A has an endpoint");
      Serving serving = me.must(serve(lender), "a thread serves");
      DeviceMemory memory = a.allocate(size);
      host::delay_task(acl::Entry::aclrtMemcpyAsync, 100);
      me.must(copy_to_device(stream, memory.bytes(), first.span()), "a slow copy is under way");
      Lent lent = me.must(lender.offer("m", std::move(memory), after(stream)), "A offers what it writes");
      me.pause_until("B", "read");
      me.must(copy_to_device(stream, lent.bytes(), second.span()), "another");
      me.must(lent.publish(after(stream)), "A publishes it");
      me.must(me.must(std::move(lent).close(30s), "A closes").close(), "and frees");
    }
    a.leave();
  });
  story.actor("B", [&](Actor& me) {
    const Party b(me);
    Lease lease = me.must(borrow(b.device, endpoint, "m", 30s), "B borrows");
    me.expect(b.read(lease.bytes()) == pattern(size, 1), "all of it is there");
    me.step("read");
    me.must(lease.wait_newer(1, 30s), "B waits for the next");
    me.expect(b.read(lease.bytes()) == pattern(size, 2), "all of it is there");
    me.must(std::move(lease).close(), "B returns it");
    b.leave();
  });
  story.run();
}

TEST_CASE("what a stream could not write is neither offered nor published, and the error is the stream's (B078)") {
  Story story;
  const Endpoint endpoint = Endpoint::path(story.file("lender"));
  story.actor("A", [&](Actor& me) {
    const Party a(me);
    {
      Stream stream = me.must(Stream::create(a.device), "a stream is made");
      const LockedBytes from(a, pattern(size, 1));
      Lender lender = me.must(Lender::at(a.runtime, endpoint), "A has an endpoint");
      Serving serving = me.must(serve(lender), "a thread serves");
      DeviceMemory memory = a.allocate(size);
      host::fail_task(acl::Entry::aclrtMemcpyAsync, 1, code::rt_sys_dma);
      me.must(copy_to_device(stream, memory.bytes(), from.span()), "a copy that will fail");
      auto refused = lender.offer("m", std::move(memory), after(stream));
      me.expect(!refused && refused.error().error().acl_code() == code::rt_sys_dma, "the stream's error comes back");
      memory = std::move(refused).error().take_back();
      me.step("not offered");
      me.pause_until("B", "got nothing");
      me.must(copy_to_device(stream, memory.bytes(), from.span()), "once more");
      Lent lent = me.must(lender.offer("m", std::move(memory), after(stream)), "now it is written");
      me.pause_until("B", "has it");
      host::fail_task(acl::Entry::aclrtMemcpyAsync, 1, code::rt_sys_dma);
      me.must(copy_to_device(stream, lent.bytes(), from.span()), "a copy that will fail");
      const auto published = lent.publish(after(stream));
      me.expect(!published && published.error().acl_code() == code::rt_sys_dma, "the stream's error comes back");
      me.expect_equal(lent.generation(), 1U, "and nothing is published");
      me.step("not published");
      me.must(me.must(std::move(lent).close(30s), "A closes").close(), "and frees");
    }
    a.leave();
  });
  story.actor("B", [&](Actor& me) {
    const Party b(me);
    me.pause_until("A", "not offered");
    refused_as(me, borrow(b.device, endpoint, "m", time_to_answer), Errc::no_such_offer, "there is no offer");
    me.step("got nothing");
    Lease lease = me.must(borrow(b.device, endpoint, "m", 30s), "B borrows");
    me.expect(b.read(lease.bytes()) == pattern(size, 1), "all of it is there");
    me.step("has it");
    me.pause_until("A", "not published");
    refused_as(me, lease.wait_newer(1, Deadline::in_milliseconds(50)), Errc::timed_out, "there is nothing newer");
    me.must(std::move(lease).close(), "B returns it");
    b.leave();
  });
  story.run();
}
