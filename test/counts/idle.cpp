// SPDX-License-Identifier: Apache-2.0
// A process that shares and is left alone costs nothing: no thread of it is ever scheduled.
#include "scheduled.hpp"
#include "support/sanitizers.hpp"
#include "support/sharing.hpp"

#include <chrono>
#include <thread>
#include <vector>

namespace test = devshare::test;
using test::Actor;
using test::Party;
using test::Scheduled;
using test::scheduled;

namespace {

void import_and_idle(Actor& me) {
  const Party b(me);
  b.introduce_myself_to("A");
  const auto mapping = b.import(b.ticket_from("A"));
  me.step("imported");
  me.pause_until("watcher", "done");
}

}  // namespace

TEST_CASE("an exporter with connected importers and no request makes no context switch in five seconds") {
  if (test::under_sanitizer()) DEVSHARE_SKIP("a sanitizer has threads of its own");
  test::Story story;
  story.actor("A", [](Actor& me) {
    const Party a(me);
    auto key = a.me.must(devshare::export_key(a.allocate(4096)), "the memory is exported");
    a.share_with("B", key);
    a.share_with("C", key);
    me.pause_until("watcher", "done");
  });
  story.actor("B", import_and_idle);
  story.actor("C", import_and_idle);
  story.actor("watcher", [](Actor& me) {
    const char* const watched[] = {"A", "B", "C"};
    me.pause_until("B", "imported");
    me.pause_until("C", "imported");
    std::this_thread::sleep_for(std::chrono::milliseconds(300));  // for the last of them to go to sleep
    std::vector<Scheduled> before;
    for (const char* name : watched) before.push_back(scheduled(me.pid_of(name)));
    std::this_thread::sleep_for(std::chrono::seconds(5));
    for (std::size_t i = 0; i < before.size(); ++i) {
      const long switches = scheduled(me.pid_of(watched[i])).switches - before[i].switches;
      me.expect_equal(switches, 0, fmt::format("{} is never scheduled", watched[i]));
    }
    me.expect_equal(before[0].threads, std::size_t{2}, "the exporter has its service thread");
    me.expect_equal(before[1].threads, std::size_t{1}, "an importer has no thread");
    me.step("done");
  });
  story.run();
}

TEST_CASE("a process whose streams have nothing to do, or wait without a limit, makes no context switch in five seconds") {
  if (test::under_sanitizer()) DEVSHARE_SKIP("a sanitizer has threads of its own");
  test::Story story;
  story.actor("A", [](Actor& me) {
    const Party a(me);
    auto memory = a.allocate(4096);
    std::vector<devshare::Stream> streams;
    const auto notify = me.must(devshare::SharedNotify::create(a.device), "a notify");
    for (int i = 0; i < 100; ++i) {
      streams.push_back(me.must(devshare::Stream::create(a.device), "a stream"));
      me.must(devshare::fill(streams.back(), memory.bytes(), std::byte{1}), "that has worked");
      me.must(streams.back().synchronize(), "and rests");
    }
    for (std::size_t i = 0; i < 50; ++i) me.must(notify.hold_up(streams[i]), "or waits");
    me.step("rests");
    me.pause_until("watcher", "done");
    const auto records = me.must(devshare::Stream::create(a.device), "one more stream");
    for (std::size_t i = 0; i < 50; ++i) {
      me.must(notify.record(records), "lets one go");
      me.must(records.synchronize(), "at a time");
      me.must(streams[i].synchronize(), "in order");
    }
  });
  story.actor("watcher", [](Actor& me) {
    me.pause_until("A", "rests");
    std::this_thread::sleep_for(std::chrono::milliseconds(300));  // for the last of them to go to sleep
    const Scheduled before = scheduled(me.pid_of("A"));
    std::this_thread::sleep_for(std::chrono::seconds(5));
    me.expect_equal(scheduled(me.pid_of("A")).switches - before.switches, 0, "A is never scheduled");
    me.expect(before.threads <= 4, "100 streams have two threads, the notify one");
    me.step("done");
  });
  story.run();
}
