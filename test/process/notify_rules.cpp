// SPDX-License-Identifier: Apache-2.0
// Notifies between processes over the C ABI: R46 to R48, who may import, and what becomes of them when a side is
// killed.
#include "key_process.hpp"
#include "support/catch.hpp"

#include <atomic>
#include <string>

using namespace devshare;
using namespace devshare::test;

namespace {

constexpr std::uint64_t listed_notify = acl::notify_export::listed;
constexpr std::uint64_t open_notify = acl::notify_export::disable_pid_validation;

// A process with notifies and a stream.
class NotifyProcess : public Process {
 public:
  explicit NotifyProcess(Actor& me, Switches switches = {}, std::int32_t device = 0)
      : Process(me, switches, device), me_(me) {}

  acl::aclrtNotify create() const {
    acl::aclrtNotify notify = nullptr;
    me_.expect_equal(api().aclrtCreateNotify(&notify, 0), 0, "aclrtCreateNotify");
    return notify;
  }
  acl::aclrtStream stream() const {
    acl::aclrtStream made = nullptr;
    me_.expect_equal(api().aclrtCreateStream(&made), 0, "aclrtCreateStream");
    return made;
  }
  Key export_notify(acl::aclrtNotify notify, std::uint64_t flags) const {
    Key key{};
    me_.expect_equal(api().aclrtNotifyGetExportKey(notify, key.bytes, sizeof key.bytes, flags), 0,
                     "aclrtNotifyGetExportKey");
    return key;
  }
  void admit(acl::aclrtNotify notify, std::int32_t pid) const {
    me_.expect_equal(api().aclrtNotifySetImportPid(notify, &pid, 1), 0, "aclrtNotifySetImportPid");
  }
  acl::aclrtNotify import_notify(const Key& key, std::uint64_t flags = acl::notify_import::enable_peer_access) const {
    acl::aclrtNotify notify = nullptr;
    const acl::aclError result = api().aclrtNotifyImportByKey(&notify, key.bytes, flags);
    if (result != 0) me_.expect(false, fmt::format("the import fails: {} {}", result, text()));
    return notify;
  }
  void import_notify_fails(const Key& key, acl::aclError expected, Reason reason, std::string_view what) const {
    acl::aclrtNotify notify = nullptr;
    refused(api().aclrtNotifyImportByKey(&notify, key.bytes, 0), expected, reason, what);
  }
  void refused(acl::aclError actual, acl::aclError expected, Reason reason, std::string_view what) const {
    const Reason why = host::last_cause().reason;
    me_.expect_equal(actual, expected, what);
    me_.expect_equal(why, reason, fmt::format("{}: the reason", what));
  }
  void succeeds(acl::aclError actual, std::string_view what) const { me_.expect_equal(actual, 0, what); }

 private:
  Actor& me_;
};

}  // namespace

TEST_CASE("R46 R48 B records what A waits for, cannot wait itself, and each ends its own") {
  Story story;
  story.actor("A", [](Actor& me) {
    const NotifyProcess a(me);
    const acl::aclrtNotify notify = a.create();
    const acl::aclrtStream stream = a.stream();
    const Key key = a.export_notify(notify, listed_notify);
    a.admit(notify, me.receive<std::int32_t>("B"));
    static std::atomic<bool> ran{false};
    a.succeeds(api().aclrtWaitAndResetNotify(notify, stream, 0), "A waits");
    a.succeeds(host::launch(
                   stream, [](void*) { ran = true; }, nullptr),
               "and goes on then");
    me.expect(!ran, "not yet");
    me.send("B", key);
    a.succeeds(api().aclrtSynchronizeStream(stream), "B's recording arrives");
    me.expect(ran, "and A goes on");
    a.succeeds(api().aclrtWaitAndResetNotify(notify, stream, 0), "A waits again");
    me.step("waits again");
    a.succeeds(api().aclrtSynchronizeStream(stream), "and goes on again");
    a.succeeds(api().aclrtDestroyNotify(notify), "A ends its own");
    me.step("ended");
    me.pause_until("B", "done");
    me.expect_equal(host::counters().notifies, std::uint64_t{0}, "none is left");
  });
  story.actor("B", [](Actor& me) {
    const NotifyProcess b(me);
    me.send("A", b.bare_pid());
    const Key key = me.receive<Key>("A");
    const acl::aclrtNotify notify = b.import_notify(key);
    acl::aclrtNotify own[2] = {b.create(), notify};
    char bytes[acl::ipc_key_size];
    std::int32_t pid = b.bare_pid();
    b.refused(api().aclrtWaitAndResetNotify(notify, nullptr, 0), code::rt_param_invalid, Reason::not_the_creator,
              "B waits");
    b.refused(api().aclrtNotifyBatchReset(own, 2), code::rt_param_invalid, Reason::not_the_creator, "B resets");
    b.refused(api().aclrtNotifyGetExportKey(notify, bytes, sizeof bytes, 0), code::rt_internal_error,
              Reason::not_the_creator, "B exports what it imported");
    b.refused(api().aclrtNotifySetImportPid(notify, &pid, 1), code::rt_drv_internal, Reason::not_the_exporter,
              "B admits to what it imported");
    b.succeeds(api().aclrtRecordNotify(notify, nullptr), "B records");
    b.succeeds(api().aclrtSynchronizeStream(nullptr), "and has");
    me.pause_until("A", "waits again");
    const acl::aclrtNotify again = b.import_notify(key);
    me.expect(again != notify, "a second import is another object");
    b.succeeds(api().aclrtDestroyNotify(notify), "B ends the first");
    b.succeeds(api().aclrtRecordNotify(again, nullptr), "and records by the second");
    me.pause_until("A", "ended");
    b.import_notify_fails(key, code::rt_drv_internal, Reason::unknown_key, "what its creator has ended");
    b.succeeds(api().aclrtRecordNotify(again, nullptr), "what B has it still may record");
    b.succeeds(api().aclrtSynchronizeStream(nullptr), "to no effect");
    b.succeeds(api().aclrtDestroyNotify(again), "until B ends it too");
    b.succeeds(api().aclrtDestroyNotify(own[0]), "and its own");
    me.expect_equal(host::counters().notifies, std::uint64_t{0}, "none is left");
    me.step("done");
  });
  story.run();
}

TEST_CASE("R13 R47 a notify is imported by whom its creator admitted, or by everybody where it asks nobody") {
  Story story;
  story.actor("A", [](Actor& me) {
    const NotifyProcess a(me);
    const acl::aclrtNotify narrow = a.create();
    const acl::aclrtNotify open = a.create();
    me.send("B", a.export_notify(narrow, listed_notify));
    me.send("B", a.export_notify(open, open_notify));
    me.send("B", a.export_key(a.allocate(), open_to_all));
    me.pause_until("B", "refused");
    a.admit(narrow, me.receive<std::int32_t>("B"));
    me.step("admitted");
    me.pause_until("B", "done");
  });
  story.actor("B", [](Actor& me) {
    const NotifyProcess b(me);
    const Key narrow = me.receive<Key>("A");
    const Key open = me.receive<Key>("A");
    const Key memory = me.receive<Key>("A");
    b.import_notify_fails(narrow, code::rt_drv_internal, Reason::not_admitted, "not admitted");
    b.import_notify_fails(memory, code::rt_drv_internal, Reason::unknown_key, "a key of memory");
    b.import_fails(open, code::rt_drv_internal, Reason::unknown_key);
    for (const std::uint64_t flags : {0U, 1U, 2U, 3U}) (void)b.import_notify(open, flags);
    Key damaged = open;
    damaged.bytes[60] = damaged.bytes[60] == 'a' ? 'b' : 'a';
    b.import_notify_fails(damaged, code::rt_drv_internal, Reason::unknown_key, "a damaged key");
    me.step("refused");
    me.send("A", b.bare_pid());
    me.pause_until("A", "admitted");
    (void)b.import_notify(narrow);
    me.expect_equal(host::counters().notifies, std::uint64_t{5}, "five imports");
    me.step("done");
  });
  story.run();
}

TEST_CASE("a creator that is killed takes its notify with it: what B records fails, and says so at synchronise") {
  Story story;
  story.actor("A", [](Actor& me) {
    const NotifyProcess a(me);
    const acl::aclrtNotify notify = a.create();
    me.send("B", a.export_notify(notify, open_notify));
    me.pause_until("B", "never");
  });
  story.actor("B", [](Actor& me) {
    const NotifyProcess b(me);
    const Key key = me.receive<Key>("A");
    const acl::aclrtNotify notify = b.import_notify(key);
    me.step("imported");
    me.pause_until_ended("A");
    b.succeeds(api().aclrtRecordNotify(notify, nullptr), "the recording is enqueued");
    b.refused(api().aclrtSynchronizeStream(nullptr), code::rt_drv_internal, Reason::exporter_gone, "and fails");
    b.import_notify_fails(key, code::rt_drv_internal, Reason::exporter_gone, "nor is it imported any more");
    b.succeeds(api().aclrtDestroyNotify(notify), "it is B's to end");
  });
  story.kill("A", at("B", "imported"));
  story.run();
}

TEST_CASE("an importer that is killed leaves A waiting to its limit, and no longer than that") {
  Story story;
  story.actor("A", [](Actor& me) {
    const NotifyProcess a(me);
    const acl::aclrtNotify notify = a.create();
    const acl::aclrtStream stream = a.stream();
    me.send("B", a.export_notify(notify, open_notify));
    a.succeeds(api().aclrtWaitAndResetNotify(notify, stream, 1), "A waits for a second");
    me.pause_until_ended("B");
    a.refused(api().aclrtSynchronizeStream(stream), code::rt_wait_timeout, Reason::timed_out, "nobody recorded it");
    a.succeeds(api().aclrtRecordNotify(notify, nullptr), "A may record it itself");
    a.succeeds(api().aclrtWaitAndResetNotify(notify, stream, 0), "and wait again");
    a.succeeds(api().aclrtSynchronizeStream(stream), "as if nothing had happened");
  });
  story.actor("B", [](Actor& me) {
    const NotifyProcess b(me);
    (void)b.import_notify(me.receive<Key>("A"));
    me.step("imported");
    me.pause_until("A", "never");
  });
  story.kill("B", at("imported"));
  story.run();
}

TEST_CASE("two processes pass a turn to and fro, a hundred times, across two devices") {
  Story story;
  const auto player = [](const char* other, bool first, std::int32_t device) {
    return [other, first, device](Actor& me) {
      const NotifyProcess process(me, {}, device);
      const acl::aclrtNotify mine = process.create();
      const acl::aclrtStream stream = process.stream();
      me.send(other, process.export_notify(mine, open_notify));
      const acl::aclrtNotify theirs = process.import_notify(me.receive<Key>(other));
      for (int round = 0; round < 100; ++round) {
        if (!first || round != 0) process.succeeds(api().aclrtWaitAndResetNotify(mine, stream, 60), "its turn comes");
        process.succeeds(api().aclrtRecordNotify(theirs, stream), "and goes");
      }
      process.succeeds(api().aclrtSynchronizeStream(stream), "all turns were taken");
      me.step("done");
      me.pause_until(other, "done");
    };
  };
  story.actor("A", player("B", true, 0));
  story.actor("B", player("A", false, 1));
  story.run();
}
