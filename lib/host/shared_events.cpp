// SPDX-License-Identifier: Apache-2.0
#include "shared_events.hpp"

#include "answers.hpp"
#include "calls.hpp"
#include "client.hpp"
#include "device.hpp"
#include "export_state.hpp"
#include "exports.hpp"
#include "failure.hpp"
#include "profile.hpp"
#include "stream_alarms.hpp"
#include "streams.hpp"
#include "token_calls.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

namespace devshare::host {
namespace {

namespace code = acl::code;

using Clock = std::chrono::steady_clock;

class RecordTask final : public Task {
 public:
  explicit RecordTask(std::shared_ptr<SharedMoment> moment)
      : Task(acl::Entry::aclrtRecordEvent, Kind::control), moment_(std::move(moment)), number_(moment_->begin()) {}

  bool pass(StreamState& all, Queue&, TaskFailure*) override {
    moment_->happens(number_);
    all.progress.notify_all();
    return true;
  }
  void dropped(StreamState&, Queue&) override { moment_->happens(number_); }  // it holds nobody up

 private:
  std::shared_ptr<SharedMoment> moment_;
  std::uint64_t number_;
};

class WaitTask final : public Task {
 public:
  explicit WaitTask(std::shared_ptr<SharedMoment> moment)
      : Task(acl::Entry::aclrtStreamWaitEvent, Kind::control), moment_(std::move(moment)), number_(moment_->newest()) {}

  bool pass(StreamState& all, Queue& queue, TaskFailure*) override {
    alarm_.clear(all);
    if (moment_->happened(number_)) return true;
    alarm_.set(all, queue, Clock::now() + SharedMoment::look_again);
    return false;
  }
  void dropped(StreamState& all, Queue&) override { alarm_.clear(all); }

 private:
  std::shared_ptr<SharedMoment> moment_;
  std::uint64_t number_;
  Alarm alarm_;
};

// A handle: a mark, and the name in the form that has no zeros, with one behind it.
constexpr std::array<char, 8> mark = {'D', 'v', 's', 'E', 'v', 'e', 'n', 't'};
static_assert(mark.size() + 51 <= acl::ipc_event_handle_size);

acl::aclrtIpcEventHandle encode_handle(const KeyName& name) {
  acl::aclrtIpcEventHandle handle{};
  const KeyBytes key = encode_key(name, KeyForm::binary);
  std::copy(mark.begin(), mark.end(), handle.reserved);
  std::memcpy(handle.reserved + mark.size(), key.data(), sizeof handle.reserved - mark.size());
  return handle;
}

std::optional<KeyName> decode_handle(const acl::aclrtIpcEventHandle& handle) {
  if (!std::equal(mark.begin(), mark.end(), handle.reserved)) return std::nullopt;
  KeyBytes key{};
  std::memcpy(key.data(), handle.reserved + mark.size(), sizeof handle.reserved - mark.size());
  const std::optional<KeyName> name = decode_key(key.data(), KeyForm::binary);
  if (!name || std::memcmp(encode_handle(*name).reserved, handle.reserved, sizeof handle.reserved) != 0) {
    return std::nullopt;
  }
  return name;
}

acl::aclError check_product(acl::Entry call) {
  if (profile().supports(call)) return code::success;
  return refuse(code::rt_feature_not_support, Reason::unsupported,
                fmt::format("{} has no events between processes", product_name(profile().product)));
}

acl::aclError refuse_unknown() {
  return refuse(code::rt_invalid_handle, Reason::unknown_event, "there is no such event: destroyed, or never created");
}

acl::aclError add_import(std::shared_ptr<SharedMoment> moment, DeviceNumber device, acl::aclrtEvent* event) {
  StreamState& all = stream_state.get();
  {
    const std::lock_guard lock(all.mutex);
    if (Event* const made = all.events.make(most_events)) {
      made->flags = acl::event_flag::ipc;
      made->device = device;
      made->moment = std::move(moment);
      made->imported = true;
      *event = Numbered<Event>::handle_of(*made);
      return code::success;
    }
  }
  return refuse(code::rt_no_event_resource, {.reason = Reason::resource_limit, .available = most_events},
                fmt::format("this process has {} events, and that is all it can have: destroy some", most_events));
}

}  // namespace

std::unique_ptr<Task> record_shared(const std::shared_ptr<SharedMoment>& moment) {
  return std::make_unique<RecordTask>(moment);
}

std::unique_ptr<Task> wait_for_shared(const std::shared_ptr<SharedMoment>& moment) {
  if (moment->happened(moment->newest())) return nullptr;
  return std::make_unique<WaitTask>(moment);
}

bool wait_on_host(StreamState& all, std::unique_lock<std::mutex>& lock, const SharedMoment& moment,
                  std::optional<Clock::time_point> until) {
  const std::uint64_t number = moment.newest();
  while (!moment.happened(number) && !all.closed) {
    const auto now = Clock::now();
    if (until && now >= *until) return false;
    const auto next = now + SharedMoment::look_again;
    all.progress.wait_until(lock, until ? std::min(next, *until) : next);
  }
  return moment.happened(number);
}

acl::aclError refuse_shared(const char* what) {
  return refuse(
      code::rt_feature_not_support, Reason::shared_event,
      fmt::format("an event for other processes takes no {}: it is recorded, waited for and synchronised (R49)", what));
}

namespace calls {

aclError aclrtIpcGetEventHandle(aclrtEvent event, aclrtIpcEventHandle* handle) {
  if (event == nullptr) return refuse_null("event");
  if (handle == nullptr) return refuse_null("handle");
  DeviceNumber device;
  if (const aclError refused = current_device(&device)) return refused;
  if (const aclError refused = check_product(Entry::aclrtIpcGetEventHandle)) return refused;
  ExportState& exports = export_state.get();
  const std::scoped_lock exports_lock(exports.mutex);
  StreamState& all = stream_state.get();
  std::unique_lock lock(all.mutex);
  Event* const found = all.events.find(event);
  if (found == nullptr || found->moment == nullptr || found->imported) {
    const bool unknown = found == nullptr;
    const bool imported = !unknown && found->imported;
    lock.unlock();
    if (unknown) return refuse_unknown();
    if (imported) {
      return refuse(code::rt_drv_internal, Reason::not_the_exporter,
                    "the event was opened here: its handle comes from the process that created it");
    }
    return refuse(code::rt_param_invalid, Reason::shared_event,
                  "the event was not created for other processes: create it with ACL_EVENT_IPC alone (R49)");
  }
  if (!found->exported) {
    if (const aclError refused = need_session(exports)) return refused;
    EventExport* const made = exports.session->events().add(exports.session->endpoint(), KeyForm::binary);
    if (made == nullptr) {
      return refuse(code::rt_resource_alloc_fail, Cause{.reason = Reason::key_limit, .available = most_keys},
                    fmt::format("this process has exported {} events, and that is all it can", most_keys));
    }
    made->moment = found->moment;
    made->device = found->device.physical;
    found->exported = true;
    found->name = made->name;
  }
  *handle = encode_handle(found->name);
  return code::success;
}

aclError aclrtIpcOpenEventHandle(aclrtIpcEventHandle handle, aclrtEvent* event) {
  if (event == nullptr) return refuse_null("event");
  DeviceNumber device;
  if (const aclError refused = current_device(&device)) return refused;
  if (const aclError refused = check_product(Entry::aclrtIpcOpenEventHandle)) return refused;
  if (const aclError refused = refuse_after_failed_task(device.physical)) return refused;
  const std::optional<KeyName> name = decode_handle(handle);
  if (!name) return refuse(code::rt_drv_internal, Reason::unknown_key, "these bytes are no handle of an event");
  if (is_own_key(*name)) {
    return refuse(code::rt_drv_internal, Reason::own_key, "this process created the event itself: use that one");
  }
  Request request;
  request.op = Op::import_event;
  request.key = *name;
  Fetched fetched = ask_exporter(request);
  const Reply& reply = fetched.reply;
  if (reply.code != code::success) return refuse_answer(reply, Asked::event);
  const bool whole = reply.size == SharedMoment::bytes && checked_pages(reply, fetched.descriptor) != 0;
  if (!whole || reply.device >= profile().device_count) {
    return refuse_answer({.code = code::rt_drv_internal, .reason = Reason::protocol}, Asked::event);
  }
  if (const aclError refused = enable_peer_access_for_import(device.physical, reply.device)) return refused;
  std::shared_ptr<SharedMoment> moment;
  if (const aclError refused = SharedMoment::map(std::move(fetched.descriptor), &moment)) return refused;
  return add_import(std::move(moment), device, event);
}

}  // namespace calls
}  // namespace devshare::host
