// SPDX-License-Identifier: Apache-2.0
// Notifies inside one process: recorded, waited for, taken back; and what is refused. Between processes: notify_rules.
#include "stream_session.hpp"
#include "support/watchdog.hpp"

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>
#include <thread>

using namespace devshare::test;
using devshare::host::Reason;
namespace acl = devshare::acl;
namespace code = devshare::acl::code;
namespace host = devshare::host;

namespace {

constexpr Refusal unknown{code::rt_invalid_handle, Reason::unknown_notify};

class NotifySession : public StreamSession {
 public:
  using StreamSession::StreamSession;
  acl::aclrtNotify notify() const {
    acl::aclrtNotify made = nullptr;
    CHECK(acl.aclrtCreateNotify(&made, acl::notify_flag::plain) == 0);
    return made;
  }
};

}  // namespace

TEST_CASE("a stream that waits for a notify goes on when it is recorded, and takes the recording back") {
  const Watchdog watchdog("a notify");
  NotifySession session;
  const auto& rt = session.acl;
  const acl::aclrtNotify notify = session.notify();
  const acl::aclrtStream waits = session.stream();
  const acl::aclrtStream records = session.stream();
  std::atomic<bool> first{false};
  std::atomic<bool> second{false};
  REQUIRE(rt.aclrtWaitAndResetNotify(notify, waits, 0) == 0);
  REQUIRE(host::launch(waits, set_flag, &first) == 0);
  REQUIRE(rt.aclrtWaitAndResetNotify(notify, waits, 0) == 0);
  REQUIRE(host::launch(waits, set_flag, &second) == 0);
  CHECK(rt.aclrtSynchronizeStreamWithTimeout(waits, 10) == code::rt_stream_sync_timeout);
  CHECK_FALSE(first);
  REQUIRE(rt.aclrtRecordNotify(notify, records) == 0);
  CHECK(rt.aclrtSynchronizeStream(records) == 0);
  CHECK(rt.aclrtSynchronizeStreamWithTimeout(waits, 10) == code::rt_stream_sync_timeout);
  CHECK(first);
  CHECK_FALSE(second);  // one recording lets one wait go
  REQUIRE(rt.aclrtRecordNotify(notify, records) == 0);
  CHECK(rt.aclrtSynchronizeStream(waits) == 0);
  CHECK(second);
  CHECK(rt.aclrtDestroyNotify(notify) == 0);
  CHECK(host::counters().notifies == 0);
}

TEST_CASE("a notify that is recorded before anybody waits lets one wait go, however often it was recorded") {
  const Watchdog watchdog("a notify recorded before");
  NotifySession session;
  const auto& rt = session.acl;
  const acl::aclrtNotify notify = session.notify();
  const acl::aclrtStream stream = session.stream();
  for (int i = 0; i < 3; ++i) REQUIRE(rt.aclrtRecordNotify(notify, nullptr) == 0);
  REQUIRE(rt.aclrtSynchronizeStream(nullptr) == 0);
  REQUIRE(rt.aclrtWaitAndResetNotify(notify, stream, 0) == 0);
  CHECK(rt.aclrtSynchronizeStream(stream) == 0);
  REQUIRE(rt.aclrtWaitAndResetNotify(notify, stream, 0) == 0);
  CHECK(rt.aclrtSynchronizeStreamWithTimeout(stream, 10) == code::rt_stream_sync_timeout);
  CHECK(rt.aclrtDestroyStreamForce(stream) == 0);

  // Taken back before anybody waited.
  std::array<acl::aclrtNotify, 2> batch{notify, session.notify()};
  for (const acl::aclrtNotify each : batch) REQUIRE(rt.aclrtRecordNotify(each, nullptr) == 0);
  REQUIRE(rt.aclrtSynchronizeStream(nullptr) == 0);
  REQUIRE(rt.aclrtNotifyBatchReset(batch.data(), batch.size()) == 0);
  const acl::aclrtStream other = session.stream();
  for (const acl::aclrtNotify each : batch) {
    REQUIRE(rt.aclrtWaitAndResetNotify(each, other, 0) == 0);
    CHECK(rt.aclrtSynchronizeStreamWithTimeout(other, 10) == code::rt_stream_sync_timeout);
    REQUIRE(rt.aclrtRecordNotify(each, nullptr) == 0);
    CHECK(rt.aclrtSynchronizeStream(other) == 0);
  }

  // A batch with one that is none takes back nothing.
  REQUIRE(rt.aclrtRecordNotify(batch[0], nullptr) == 0);
  REQUIRE(rt.aclrtSynchronizeStream(nullptr) == 0);
  REQUIRE(rt.aclrtDestroyNotify(batch[1]) == 0);
  CHECK(refused(rt.aclrtNotifyBatchReset(batch.data(), batch.size())) == unknown);
  REQUIRE(rt.aclrtWaitAndResetNotify(batch[0], other, 0) == 0);
  CHECK(rt.aclrtSynchronizeStreamWithTimeout(other, 20'000) == 0);
}

TEST_CASE("of several streams that wait each recording lets one go") {
  const Watchdog watchdog("several waiting streams");
  NotifySession session;
  const auto& rt = session.acl;
  constexpr std::size_t count = 20;
  const acl::aclrtNotify notify = session.notify();
  std::atomic<int> gone{0};
  std::array<acl::aclrtStream, count> streams{};
  const std::size_t threads = threads_of_process();
  for (acl::aclrtStream& stream : streams) {
    stream = session.stream();
    REQUIRE(rt.aclrtWaitAndResetNotify(notify, stream, 0) == 0);
    REQUIRE(host::launch(
                stream, [](void* counter) { ++*static_cast<std::atomic<int>*>(counter); }, &gone) == 0);
  }
  CHECK(threads_of_process() <= threads + 2);  // waiting costs no thread
  const acl::aclrtStream records = session.stream();
  for (std::size_t i = 0; i < count; ++i) {
    REQUIRE(rt.aclrtRecordNotify(notify, records) == 0);
    REQUIRE(rt.aclrtSynchronizeStream(records) == 0);
    // Recording again before the last one was taken would count once: wait for that.
    while (gone.load() != static_cast<int>(i) + 1) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  CHECK(rt.aclrtSynchronizeDevice() == 0);
  CHECK(gone == static_cast<int>(count));
}

TEST_CASE("a wait with a limit fails when nobody records, and the stream goes on") {
  const Watchdog watchdog("a limit of a wait");
  NotifySession session;
  const auto& rt = session.acl;
  const acl::aclrtNotify notify = session.notify();
  const acl::aclrtStream stream = session.stream();
  const acl::aclrtStream waits_long = session.stream();
  std::atomic<bool> ran{false};
  const auto start = std::chrono::steady_clock::now();
  REQUIRE(rt.aclrtWaitAndResetNotify(notify, stream, 1) == 0);
  REQUIRE(host::launch(stream, set_flag, &ran) == 0);
  CHECK(refused(rt.aclrtSynchronizeStream(stream)) == Refusal{code::rt_wait_timeout, Reason::timed_out});
  CHECK(std::chrono::steady_clock::now() - start >= std::chrono::seconds(1));
  CHECK(ran);
  CHECK(rt.aclrtSynchronizeStream(stream) == 0);
  // One that is over is not in the way of another, and one that is recorded in time does not fail.
  REQUIRE(rt.aclrtWaitAndResetNotify(notify, waits_long, 3600) == 0);
  REQUIRE(rt.aclrtRecordNotify(notify, stream) == 0);
  CHECK(rt.aclrtSynchronizeStream(waits_long) == 0);
}

TEST_CASE("aclFinalize does not wait for what waits for ever, and tells the thread that does") {
  const Watchdog watchdog("a notify that never comes");
  acl::aclError told = 0;
  std::atomic<bool> waiting{false};
  std::thread waiter;
  {
    NotifySession session;
    const acl::aclrtStream stream = session.stream();
    void* const memory = session.allocate(4096);
    REQUIRE(session.acl.aclrtWaitAndResetNotify(session.notify(), stream, 0) == 0);
    REQUIRE(session.acl.aclrtWaitAndResetNotify(session.notify(), nullptr, 3600) == 0);
    REQUIRE(session.acl.aclrtMemsetAsync(memory, 4096, 1, 4096, stream) == 0);
    // And what looks again and again by itself.
    const acl::aclrtStream looks = session.stream();
    REQUIRE(session.acl.aclrtValueWait(memory, 1, acl::value_wait::equal, looks) == 0);
    REQUIRE(session.acl.aclrtMemsetAsync(memory, 4096, 1, 4096, looks) == 0);
    waiter = std::thread([&, stream] {
      if (host::table().aclrtSetDevice(0) != 0) return;
      waiting = true;
      told = host::table().aclrtSynchronizeStream(stream);
    });
    while (!waiting) std::this_thread::yield();
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  waiter.join();
  CHECK(told == code::uninitialize);
  CHECK(host::counters().notifies == 0);
  CHECK(host::counters().allocations == 0);
}

TEST_CASE("notifies refuse what they are not: unknown flags, other devices, ended ones, nothing at all") {
  NotifySession session;
  const auto& rt = session.acl;
  acl::aclrtNotify made = nullptr;
  std::uint32_t id = 77;
  char key[acl::ipc_key_size] = {};
  std::int32_t pid = 1;
  acl::aclrtServerPid server{0, &pid, 1};
  CHECK(refused(rt.aclrtCreateNotify(nullptr, 0)) == null);
  CHECK(refused(rt.aclrtCreateNotify(&made, 2)) == bad);
  CHECK(rt.aclrtCreateNotify(&made, acl::notify_flag::device_use_only) == 0);
  CHECK(rt.aclrtGetNotifyId(made, &id) == 0);
  CHECK(id != 77);
  CHECK(refused(rt.aclrtGetNotifyId(made, nullptr)) == null);
  CHECK(rt.aclrtDestroyNotify(made) == 0);
  int object = 0;
  acl::aclrtEvent event = nullptr;
  REQUIRE(rt.aclrtCreateEvent(&event) == 0);
  for (acl::aclrtNotify notify : {made, static_cast<acl::aclrtNotify>(&object), acl::aclrtNotify{event}}) {
    CHECK(refused(rt.aclrtDestroyNotify(notify)) == unknown);
    CHECK(refused(rt.aclrtRecordNotify(notify, nullptr)) == unknown);
    CHECK(refused(rt.aclrtWaitAndResetNotify(notify, nullptr, 0)) == unknown);
    CHECK(refused(rt.aclrtGetNotifyId(notify, &id)) == unknown);
    CHECK(refused(rt.aclrtNotifyBatchReset(&notify, 1)) == unknown);
    CHECK(refused(rt.aclrtNotifyGetExportKey(notify, key, sizeof key, 0)) == unknown);
    CHECK(refused(rt.aclrtNotifySetImportPid(notify, &pid, 1)) == unknown);
  }
  CHECK(refused(rt.aclrtDestroyNotify(nullptr)) == null);
  CHECK(refused(rt.aclrtRecordNotify(nullptr, nullptr)) == null);
  CHECK(refused(rt.aclrtWaitAndResetNotify(nullptr, nullptr, 0)) == null);
  CHECK(refused(rt.aclrtNotifyBatchReset(nullptr, 1)) == null);
  acl::aclrtNotify notify = session.notify();
  CHECK(refused(rt.aclrtNotifyBatchReset(&notify, 0)) == bad);

  // R47, and what an export and an admission look at.
  CHECK(refused(rt.aclrtNotifyGetExportKey(notify, nullptr, sizeof key, 0)) == null);
  CHECK(refused(rt.aclrtNotifyGetExportKey(notify, key, sizeof key, 1)) == bad);
  CHECK(refused(rt.aclrtNotifyGetExportKey(notify, key, sizeof key, 3)) == bad);
  CHECK(refused(rt.aclrtNotifyGetExportKey(notify, key, 64, 0)) == bad);
  CHECK(refused(rt.aclrtNotifySetImportPid(notify, &pid, 1)) == bad);  // not exported
  CHECK(refused(rt.aclrtNotifySetImportPid(notify, nullptr, 1)) == null);
  CHECK(refused(rt.aclrtNotifySetImportPid(notify, &pid, 0)) == bad);
  CHECK(refused(rt.aclrtNotifySetImportPid(notify, &pid, 32)) ==
        Refusal{code::rt_param_invalid, Reason::too_many_pids});
  CHECK(refused(rt.aclrtNotifySetImportPidInterServer(notify, nullptr, 1)) == null);
  CHECK(refused(rt.aclrtNotifySetImportPidInterServer(notify, &server, 1)) ==
        Refusal{code::rt_feature_not_support, Reason::unsupported});
  CHECK(refused(rt.aclrtNotifyImportByKey(nullptr, key, 0)) == null);
  CHECK(refused(rt.aclrtNotifyImportByKey(&made, nullptr, 0)) == null);
  CHECK(refused(rt.aclrtNotifyImportByKey(&made, key, 4)) == bad);
  CHECK(refused(rt.aclrtNotifyImportByKey(&made, key, 0)) == Refusal{code::rt_drv_internal, Reason::unknown_key});

  REQUIRE(rt.aclrtNotifyGetExportKey(notify, key, sizeof key, acl::notify_export::listed) == 0);
  CHECK(refused(rt.aclrtNotifyGetExportKey(notify, key, sizeof key, 0)) ==
        Refusal{code::rt_internal_error, Reason::already_exported});
  CHECK(refused(rt.aclrtNotifyImportByKey(&made, key, 0)) == Refusal{code::rt_drv_internal, Reason::own_key});
  acl::aclrtNotify open = session.notify();
  std::array<char, 256> large{};
  large.fill('#');
  REQUIRE(rt.aclrtNotifyGetExportKey(open, large.data(), large.size(), acl::notify_export::disable_pid_validation) ==
          0);
  CHECK(std::string(large.data() + sizeof key, 191) == std::string(191, '#'));  // 65 bytes are written
  CHECK(refused(rt.aclrtNotifySetImportPid(open, &pid, 1)) ==
        Refusal{code::rt_no_permission, Reason::validation_disabled});

  REQUIRE(rt.aclrtSetDevice(1) == 0);
  CHECK(refused(rt.aclrtWaitAndResetNotify(notify, nullptr, 0)) ==
        Refusal{code::rt_param_invalid, Reason::other_device});
  CHECK(rt.aclrtRecordNotify(notify, nullptr) == 0);  // recording is for any device
  std::thread([&] {
    const Refusal no_context{code::rt_context_null, Reason::no_context};
    CHECK(refused(rt.aclrtCreateNotify(&made, 0)) == no_context);
    CHECK(refused(rt.aclrtRecordNotify(notify, nullptr)) == no_context);
    CHECK(refused(rt.aclrtWaitAndResetNotify(notify, nullptr, 0)) == no_context);
    CHECK(refused(rt.aclrtNotifyImportByKey(&made, key, 0)) == no_context);
  }).join();
}

TEST_CASE("how many notifies a process has depends on the product, and so does the batch") {
  const auto [product, most, batch] =
      GENERATE(std::tuple("a2", 8192, true), std::tuple("310p", 1024, false), std::tuple("training", 1024, false));
  REQUIRE(host::set("PROFILE", product));
  {
    NotifySession session;
    acl::aclrtNotify notify = nullptr;
    for (int i = 0; i < most; ++i) REQUIRE(session.acl.aclrtCreateNotify(&notify, 0) == 0);
    acl::aclrtNotify another = nullptr;
    CHECK(refused(session.acl.aclrtCreateNotify(&another, 0)) ==
          Refusal{code::rt_no_notify_resource, Reason::resource_limit});
    CHECK(host::last_cause().available == static_cast<std::uint64_t>(most));
    REQUIRE(session.acl.aclrtDestroyNotify(notify) == 0);
    CHECK(session.acl.aclrtCreateNotify(&another, 0) == 0);
    const acl::aclError reset = session.acl.aclrtNotifyBatchReset(&another, 1);
    CHECK(reset == (batch ? 0 : code::rt_feature_not_support));
  }
  host::unset_all();
}
