// SPDX-License-Identifier: Apache-2.0
// Devices: set and reset with their counts (R3), contexts, the numbers of a device.
#include "device.hpp"

#include "calls.hpp"
#include "contexts.hpp"
#include "failure.hpp"
#include "fork.hpp"
#include "per_process.hpp"
#include "profile.hpp"
#include "streams.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <mutex>

namespace devshare::host {
namespace {

struct OpenDevice {
  std::uint64_t count = 0;  // aclrtSetDevice calls of this process that no aclrtResetDevice has answered
  ContextNumber primary;
};

struct State : ProcessState<State> {
  std::array<OpenDevice, max_devices> devices;  // by user id
  ContextTable contexts;

  void close_inherited() noexcept {}
};

PerProcess<State> state;

// What the thread has chosen, if it is one of this process still.
[[gnu::always_inline]] inline ContextNumber current_context(const ThreadCall& thread = this_call) noexcept {
  const State* all = state.existing();  // every call asks
  return all != nullptr && all->contexts.alive(thread.context) ? thread.context : ContextNumber();
}

acl::aclError refuse_without_context(const char* why) {
  return refuse(acl::code::rt_context_null, Reason::no_context, fmt::format("{} (R1)", why));
}

acl::aclError refuse_full() {
  return refuse(acl::code::rt_resource_alloc_fail, Cause{.reason = Reason::capacity, .needed = 1, .available = 0},
                fmt::format("this process has {} contexts, and that is all it can have", ContextTable::capacity));
}

}  // namespace

acl::aclError current_context(ContextNumber* out) {
  *out = current_context();
  if (*out) return acl::code::success;
  return refuse_without_context("this thread has no current device: call aclrtSetDevice or aclrtSetCurrentContext");
}

void set_thread_context(ContextNumber context) noexcept { this_call.choose(context); }

acl::aclError current_device(DeviceNumber* out) {
  ContextNumber context;
  if (const acl::aclError refused = current_context(&context)) return refused;
  *out = context.device();
  return acl::code::success;
}

std::int32_t device_at_hand(const ThreadCall& thread) noexcept {
  const ContextNumber context = current_context(thread);
  return context ? context.device().user : -1;
}

acl::aclError find_device(std::int32_t user, DeviceNumber* out) {
  const auto& visible = profile().visible;
  if (user < 0 || static_cast<std::size_t>(user) >= visible.size()) {
    return refuse(acl::code::rt_invalid_deviceid, Cause{.reason = Reason::no_such_device, .device = user},
                  fmt::format("device {} does not exist: this process sees {} device{}", user, visible.size(),
                              visible.size() == 1 ? "" : "s"));
  }
  *out = {user, visible[static_cast<std::size_t>(user)]};
  return acl::code::success;
}

std::int32_t user_number(std::int32_t physical) {
  const auto& visible = profile().visible;
  const auto found = std::find(visible.begin(), visible.end(), physical);
  return found == visible.end() ? -1 : static_cast<std::int32_t>(found - visible.begin());
}

void devices_shut_down() {
  State* all = state.existing();
  if (all == nullptr) return;
  const std::lock_guard lock(all->mutex);
  all->devices = {};
  all->contexts.end_all();
}

void devices_before_fork() {
  state.before_fork();
  profile_lock();
}

void devices_after_fork_in_parent() {
  profile_unlock();
  state.after_fork_in_parent();
}

void devices_after_fork_in_child() {
  profile_unlock();
  state.after_fork_in_child();
}

namespace calls {

aclError aclrtGetDeviceCount(std::uint32_t* count) {
  if (count == nullptr) return refuse(code::invalid_param, Reason::bad_argument, "count is null");
  if (std::string error = profile_error(); !error.empty()) {
    return refuse(code::invalid_param, Reason::bad_switch, std::move(error));
  }
  *count = static_cast<std::uint32_t>(profile().visible.size());
  return code::success;
}

aclError aclrtGetLogicDevIdByUserDevId(std::int32_t userDevId, std::int32_t* logicDevId) {
  if (logicDevId == nullptr) return refuse(code::invalid_param, Reason::bad_argument, "logicDevId is null");
  DeviceNumber device;
  if (const aclError refused = find_device(userDevId, &device)) return refused;
  *logicDevId = device.physical;
  return code::success;
}

aclError aclrtSetDevice(std::int32_t deviceId) {
  DeviceNumber device;
  if (const aclError refused = find_device(deviceId, &device)) return refused;
  State& all = state.get();
  const std::lock_guard lock(all.mutex);
  OpenDevice& opened = all.devices[static_cast<std::size_t>(device.user)];
  if (opened.count == 0) {
    const ContextNumber primary = all.contexts.make(device, true);
    if (!primary) return refuse_full();
    opened.primary = primary;
  }
  ++opened.count;
  this_call.choose(opened.primary);
  return code::success;
}

// One set given back, or all of them; at none the device is torn down.
static aclError reset(std::int32_t deviceId, bool force) {
  DeviceNumber device;
  if (const aclError refused = find_device(deviceId, &device)) return refused;
  State& all = state.get();
  std::unique_lock lock(all.mutex);
  OpenDevice& opened = all.devices[static_cast<std::size_t>(device.user)];
  // Tearing down waits for what is in the streams, without the lock: their tasks may make calls.
  for (ContextNumber waited; (force || opened.count == 1) && opened.primary != waited;) {
    waited = opened.primary;
    lock.unlock();
    streams_end_with(waited);
    lock.lock();
  }
  if (opened.count == 0) {
    return refuse(code::rt_context_release, Cause{.reason = Reason::bad_argument, .device = device.user},
                  fmt::format("device {} is not set in this process: one reset answers one set (R3)", device.user));
  }
  // The calling thread leaves the device, even when others keep it: so does the vendor's runtime.
  if (current_context() == opened.primary) this_call.choose({});
  opened.count = force ? 0 : opened.count - 1;
  if (opened.count == 0) {
    all.contexts.end(opened.primary);
    opened.primary = {};
  }
  return code::success;
}

aclError aclrtResetDevice(std::int32_t deviceId) { return reset(deviceId, false); }
aclError aclrtResetDeviceForce(std::int32_t deviceId) { return reset(deviceId, true); }

aclError aclrtGetDevice(std::int32_t* deviceId) {
  if (deviceId == nullptr) return refuse(code::invalid_param, Reason::bad_argument, "deviceId is null");
  const ContextNumber context = current_context();
  // Asked in order to find out: the vendor's runtime leaves no text here either.
  if (!context) return refuse_quietly(code::rt_context_null, Reason::no_context);
  *deviceId = context.device().user;
  return code::success;
}

aclError aclrtCreateContext(aclrtContext* context, std::int32_t deviceId) {
  if (context == nullptr) return refuse(code::invalid_param, Reason::bad_argument, "context is null");
  DeviceNumber device;
  if (const aclError refused = find_device(deviceId, &device)) return refused;
  State& all = state.get();
  const std::lock_guard lock(all.mutex);
  const ContextNumber made = all.contexts.make(device, false);
  if (!made) return refuse_full();
  this_call.choose(made);
  *context = made.handle();
  return code::success;
}

aclError aclrtDestroyContext(aclrtContext context) {
  if (context == nullptr) return refuse(code::invalid_param, Reason::bad_argument, "context is null");
  State& all = state.get();
  const ContextNumber number(context);
  if (!all.contexts.alive(number)) return refuse_without_context("no such context: destroyed, or never created");
  if (number.primary()) {
    return refuse_without_context("a device's own context goes with aclrtResetDevice, not by aclrtDestroyContext");
  }
  streams_end_with(number);
  const std::lock_guard lock(all.mutex);
  all.contexts.end(number);
  return code::success;
}

aclError aclrtSetCurrentContext(aclrtContext context) {
  if (context == nullptr) return refuse(code::invalid_param, Reason::bad_argument, "context is null");
  const ContextNumber number(context);
  if (!state.get().contexts.alive(number)) {
    return refuse_without_context("no such context: destroyed, or never created");
  }
  this_call.choose(number);
  return code::success;
}

aclError aclrtGetCurrentContext(aclrtContext* context) {
  if (context == nullptr) return refuse(code::invalid_param, Reason::bad_argument, "context is null");
  DeviceNumber device;
  if (const aclError refused = current_device(&device)) return refused;
  *context = current_context().handle();
  return code::success;
}

}  // namespace calls
}  // namespace devshare::host
