// SPDX-License-Identifier: Apache-2.0
// Notifies: made and destroyed, recorded and waited for in streams. How they come to other processes is in
// notify_sharing.cpp.
#include "notifies.hpp"

#include "answers.hpp"
#include "calls.hpp"
#include "client.hpp"
#include "export_state.hpp"
#include "failure.hpp"
#include "profile.hpp"
#include "stream_alarms.hpp"
#include "stream_state.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <span>
#include <utility>

namespace devshare::host {
namespace {

namespace code = acl::code;

// By the creator.
class RecordTask final : public Task {
 public:
  explicit RecordTask(std::shared_ptr<NotifyBit> bit)
      : Task(acl::Entry::aclrtRecordNotify, Kind::control), bit_(std::move(bit)) {}

  bool pass(StreamState& all, Queue&, TaskFailure*) override {
    bit_->record(all);
    return true;
  }

 private:
  std::shared_ptr<NotifyBit> bit_;
};

// By an importer. It asks another process, which may take its time.
class TellCreatorTask final : public Task {
 public:
  explicit TellCreatorTask(const KeyName& name)
      : Task(acl::Entry::aclrtRecordNotify, Kind::user_function), name_(name) {}

  acl::aclError run() override {
    Request request;
    request.op = Op::record_notify;
    request.key = name_;
    const Fetched told = ask_exporter(request);
    return told.reply.code == code::success ? code::success : refuse_answer(told.reply, Asked::notify);
  }

 private:
  KeyName name_;
};

class WaitTask final : public Task {
 public:
  WaitTask(std::shared_ptr<NotifyBit> bit, std::uint32_t seconds)
      : Task(acl::Entry::aclrtWaitAndResetNotify, Kind::control), bit_(std::move(bit)), seconds_(seconds) {}

  bool pass(StreamState& all, Queue& queue, TaskFailure* failure) override {
    if (std::exchange(bit_->recorded, false)) {
      leave(all, queue);
      return true;
    }
    const auto now = std::chrono::steady_clock::now();
    if (seconds_ != 0 && !until_) until_ = now + std::chrono::seconds(seconds_);
    if (until_ && now >= *until_) {
      leave(all, queue);
      *failure = {.call = call(),
                  .code = code::rt_wait_timeout,
                  .cause = {.reason = Reason::timed_out, .needed = seconds_},
                  .text = fmt::format("nobody recorded the notify within {} s", seconds_)};
      return true;
    }
    if (std::find(bit_->parked.begin(), bit_->parked.end(), &queue) == bit_->parked.end()) {
      bit_->parked.push_back(&queue);
    }
    if (until_) alarm_.set(all, queue, *until_);
    return false;
  }
  void dropped(StreamState& all, Queue& queue) override { leave(all, queue); }

 private:
  void leave(StreamState& all, Queue& queue) {
    std::erase(bit_->parked, &queue);
    alarm_.clear(all);
  }

  std::shared_ptr<NotifyBit> bit_;
  std::uint32_t seconds_;  // from when its turn comes; 0: without a limit
  std::optional<std::chrono::steady_clock::time_point> until_;
  Alarm alarm_;
};

// Finds a notify for a stream that is open to more work. `put` adds a task, or unlocks and refuses.
template <class Put>
acl::aclError put_in_stream(acl::aclrtNotify notify, acl::aclrtStream stream, Put put) {
  if (notify == nullptr) return refuse_unknown_notify(notify);
  StreamPlace place;
  if (const acl::aclError refused = place_of(stream, &place)) return refused;
  OpenStream open(place);
  if (open.refused() != 0) return open.refused();
  const Notify* const found = open.all().notifies.find(notify);
  if (found == nullptr) {
    open.lock().unlock();
    return refuse_unknown_notify(notify);
  }
  return put(place, open, *found);
}

}  // namespace

void NotifyBit::record(StreamState& all) {
  recorded = true;
  if (parked.empty()) return;
  Queue* const first = parked.front();
  parked.pop_front();
  resume(all, *first);
}

void record_from_outside(NotifyBit& bit) {
  StreamState* const all = stream_state.existing();
  if (all == nullptr) return;
  const std::lock_guard lock(all->mutex);
  bit.record(*all);
}

std::size_t most_notifies() {
  switch (profile().product) {
    case Product::p950:
      return 65'535;
    case Product::p310:
    case Product::training:
      return 1024;
    default:
      return 8192;
  }
}

acl::aclError refuse_unknown_notify(acl::aclrtNotify notify) {
  if (notify == nullptr) return refuse(code::invalid_param, Reason::bad_argument, "notify is null");
  return refuse(code::rt_invalid_handle, Reason::unknown_notify,
                "there is no such notify: destroyed, or never created");
}

acl::aclError refuse_not_the_creator(acl::aclError refused) {
  return refuse(refused, Reason::not_the_creator,
                "the notify was imported: only the process that created it does this, importers record (R46)");
}

acl::aclError refuse_too_many_notifies() {
  return refuse(
      code::rt_no_notify_resource, {.reason = Reason::resource_limit, .available = most_notifies()},
      fmt::format("this process has {} notifies, and that is all it can have: destroy some", most_notifies()));
}

void notifies_shut_down() {
  StreamState* const all = stream_state.existing();
  if (all == nullptr) return;
  const std::lock_guard lock(all->mutex);
  all->notifies.end_all();
}

std::uint64_t notifies_held() {
  StreamState* const all = stream_state.existing();
  if (all == nullptr) return 0;
  const std::lock_guard lock(all->mutex);
  return all->notifies.live();
}

namespace calls {

aclError aclrtCreateNotify(aclrtNotify* notify, std::uint64_t flag) {
  if (notify == nullptr) return refuse(code::invalid_param, Reason::bad_argument, "notify is null");
  if (flag > notify_flag::device_use_only) {
    return refuse(code::rt_param_invalid, Reason::bad_argument, fmt::format("flag is {}: only 0 and 1 exist", flag));
  }
  ContextNumber context;
  if (const aclError refused = current_context(&context)) return refused;
  StreamState& all = stream_state.get();
  {
    const std::lock_guard lock(all.mutex);
    if (Notify* const made = all.notifies.make(most_notifies())) {
      made->device = context.device();
      made->bit = std::make_shared<NotifyBit>();
      *notify = Numbered<Notify>::handle_of(*made);
      return code::success;
    }
  }
  return refuse_too_many_notifies();
}

// A stream that waits on it goes on waiting. Importers may still record what they have, to no effect: for them the
// notify ends when they destroy it (R48).
aclError aclrtDestroyNotify(aclrtNotify notify) {
  if (notify == nullptr) return refuse_unknown_notify(notify);
  ContextNumber context;
  if (const aclError refused = current_context(&context)) return refused;
  ExportState& exports = export_state.get();
  const std::scoped_lock exports_lock(exports.mutex);
  StreamState& all = stream_state.get();
  {
    const std::lock_guard lock(all.mutex);
    if (Notify* const found = all.notifies.find(notify)) {
      if (found->shared && !found->imported() && exports.session != nullptr) {
        exports.session->notifies().creator_left(found->name);
      }
      all.notifies.end(*found);
      return code::success;
    }
  }
  return refuse_unknown_notify(notify);
}

aclError aclrtRecordNotify(aclrtNotify notify, aclrtStream stream) {
  return put_in_stream(notify, stream, [](const StreamPlace&, OpenStream& open, const Notify& found) -> aclError {
    if (found.imported()) {
      open.add(std::make_unique<TellCreatorTask>(found.name));
    } else {
      open.add(std::make_unique<RecordTask>(found.bit));
    }
    return code::success;
  });
}

aclError aclrtWaitAndResetNotify(aclrtNotify notify, aclrtStream stream, std::uint32_t timeout) {
  return put_in_stream(notify, stream, [&](const StreamPlace& place, OpenStream& open, const Notify& found) -> aclError {
    if (found.imported()) {
      open.lock().unlock();
      return refuse_not_the_creator(code::rt_param_invalid);
    }
    const DeviceNumber own = found.device;
    const DeviceNumber current = place.context.device();
    if (own.physical != current.physical) {
      open.lock().unlock();
      return refuse(code::rt_param_invalid,
                    {.reason = Reason::other_device, .device = current.user, .peer_device = own.user},
                    fmt::format("the notify belongs to device {} and device {} is current", own.user, current.user));
    }
    open.add(std::make_unique<WaitTask>(found.bit, timeout));
    return code::success;
  });
}

aclError aclrtGetNotifyId(aclrtNotify notify, std::uint32_t* notifyId) {
  if (notifyId == nullptr) return refuse(code::invalid_param, Reason::bad_argument, "notifyId is null");
  if (notify == nullptr) return refuse_unknown_notify(notify);
  ContextNumber context;
  if (const aclError refused = current_context(&context)) return refused;
  StreamState& all = stream_state.get();
  {
    const std::lock_guard lock(all.mutex);
    if (const Notify* const found = all.notifies.find(notify)) {
      *notifyId = found->slot;
      return code::success;
    }
  }
  return refuse_unknown_notify(notify);
}

// All of them, or none where one is not this process's to reset.
aclError aclrtNotifyBatchReset(aclrtNotify* notifies, std::size_t num) {
  if (notifies == nullptr) return refuse(code::invalid_param, Reason::bad_argument, "notifies is null");
  if (num == 0) return refuse(code::rt_param_invalid, Reason::bad_argument, "num is 0");
  ContextNumber context;
  if (const aclError refused = current_context(&context)) return refused;
  if (!profile().supports(Entry::aclrtNotifyBatchReset)) {
    return refuse(code::rt_feature_not_support, Reason::unsupported,
                  fmt::format("{} resets no notifies in a batch", product_name(profile().product)));
  }
  const std::span<const aclrtNotify> batch(notifies, num);
  StreamState& all = stream_state.get();
  std::unique_lock lock(all.mutex);
  for (const aclrtNotify notify : batch) {
    const Notify* const found = all.notifies.find(notify);
    if (found != nullptr && !found->imported()) continue;
    lock.unlock();
    return found == nullptr ? refuse_unknown_notify(notify) : refuse_not_the_creator(code::rt_param_invalid);
  }
  for (const aclrtNotify notify : batch) all.notifies.find(notify)->bit->recorded = false;
  return code::success;
}

}  // namespace calls
}  // namespace devshare::host
