// SPDX-License-Identifier: Apache-2.0
// Opening and ending the process's runtime.
#include "../host/backing_facts.hpp"
#include "../host/block.hpp"
#include "../host/host_runtime.hpp"
#include "../host/ledger.hpp"
#include "../host/page_wish.hpp"
#include "../host/reading.hpp"
#include "../vendor/loader.hpp"
#include "drop_in.hpp"
#include "locks.hpp"
#include "notes.hpp"
#include "parked.hpp"
#include "process_identity.hpp"
#include "runtime_state.hpp"
#include "session_listeners.hpp"

#include <devshare/explain.hpp>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <unistd.h>

namespace devshare {
namespace detail {
namespace {

// Immortal: handles to it are everywhere, and static objects may outlive main.
RuntimeState& the_state() noexcept {
  static RuntimeState* const state = new RuntimeState;
  return *state;
}

// Puts devshare's half into the word. In a forked child the word may be all zero.
void publish_own_session(RuntimeState& state) noexcept {
  const std::uint64_t now = state.session_now();
  const std::uint64_t published = now - now % RuntimeRecord::session_step;
  __atomic_fetch_add(state.session_word, state.own_session - published, __ATOMIC_RELEASE);
}

void take_session_word(RuntimeState& state, std::uint64_t* word) noexcept {
  state.session_word = word;
  publish_own_session(state);
}

// Whatever was made until now is inert.
void end_own_session(RuntimeState& state) noexcept {
  state.own_session += RuntimeRecord::session_step;
  publish_own_session(state);
  state.open_session = 0;
}

bool import_gone_on_host(const void* address) noexcept {
  const host::PinnedBlock block(address);
  return !block || block.exporter_gone();
}

void take_host(RuntimeState& state) noexcept {
  state.table = host::table();
  state.extras = {.last_cause = &host::last_cause,
                  .copied_without_call = &host::copied_without_call,
                  .import_gone = &import_gone_on_host,
                  .import_for_reading = &host::import_for_reading,
                  .imported_for_reading = &host::imported_for_reading,
                  .wish_pages = &host::wish_pages,
                  .backing_at = &host::backing_at,
                  .backing_of = &host::backing_of};
  take_session_word(state, host::session_word());
  state.is_host = true;
  host::note_chosen();
  std::snprintf(state.origin, sizeof state.origin, "linked in");
}

// "DEVSHARE_RUNTIME=ascend: " where somebody asked for what could not be opened.
std::string as_asked_for() {
  const char* const wish = std::getenv("DEVSHARE_RUNTIME");
  return wish != nullptr && *wish != '\0' ? fmt::format("DEVSHARE_RUNTIME={}: ", wish) : std::string();
}

Error not_opened(Errc kind, acl::Entry entry, const std::string& why) noexcept {
  const Error error(kind, Operation::open_runtime, entry, 0, Reason::none, {});
  return error.with_note(keep_note(as_asked_for() + why));
}

Result<void> take_library(RuntimeState& state, const vendor::Found& found) noexcept {
  if (found.library == nullptr) return not_opened(Errc::runtime_not_found, acl::Entry::none, found.why);
  acl::Table table;
  acl::Entry missing = acl::Entry::none;
  if (!vendor::fill(table, found.library, missing)) {
    return not_opened(Errc::runtime_incomplete, missing, fmt::format("{} has no {}", found.path, name_of(missing)));
  }
  state.table = table;
  state.extras = {};
  take_session_word(state, &state.word_of_vendor);
  state.is_host = false;
  std::snprintf(state.origin, sizeof state.origin, "%s", found.path);
  return {};
}

// What was found: the drop-in is this very host runtime under ACL's name, everything else the vendor's.
Result<void> take_found(RuntimeState& state, const vendor::Found& found) noexcept {
  if (found.library == nullptr || !is_drop_in(found.library)) return take_library(state, found);
  take_host(state);
  std::snprintf(state.origin, sizeof state.origin, "%s", found.path);
  return {};
}

// Whether an installed library has a device to offer. Initialises it to be able to ask; where it has none, what was
// begun here is ended here.
bool has_device(RuntimeState& state) noexcept {
  const acl::aclError initialised = state.table.aclInit(nullptr);
  if (initialised != 0 && initialised != acl::code::repeat_initialize) return false;
  state.initialised_here = initialised == 0;
  std::uint32_t count = 0;
  if (state.table.aclrtGetDeviceCount(&count) == 0 && count > 0) return true;
  if (std::exchange(state.initialised_here, false)) (void)state.table.aclFinalize();
  return false;
}

// What the runtime says of the aclInit it has just refused.
std::string words_of(const RuntimeState& state) {
  if (state.is_host) return host::recent_message();
  const char* const text = state.table.aclGetRecentErrMsg != nullptr ? state.table.aclGetRecentErrMsg() : nullptr;
  return text != nullptr ? text : "";
}

// The choice, made once in the life of the process: an engine and devshare must not end up in two runtimes because
// the environment changed between two calls.
Result<void> choose(RuntimeState& state) noexcept {
  if (const char* const wish = std::getenv("DEVSHARE_RUNTIME"); wish != nullptr && *wish != '\0') {
    if (std::strcmp(wish, "host") == 0) {
      take_host(state);
      return {};
    }
    if (std::strcmp(wish, "ascend") != 0) return take_found(state, vendor::load(wish));
    if (const vendor::Found found = vendor::already_loaded(); found.library != nullptr) return take_found(state, found);
    return take_found(state, vendor::installed());
  }
  if (const vendor::Found found = vendor::already_loaded(); found.library != nullptr) return take_found(state, found);
  const vendor::Found found = vendor::installed();
  if (found.library != nullptr && take_found(state, found) && has_device(state)) return {};
  take_host(state);
  return {};
}

// The calls that the host runtime has: which release it plays is a switch, read by aclInit. Once in a process, as the
// runtime is chosen: other threads may be reading the table from then on.
void take_calls_of_session(RuntimeState& state) noexcept {
  if (!state.is_host || std::exchange(state.calls_taken, true)) return;
  state.table = host::table_of_session();
}

// What other threads may be reading.
void set_pid(RuntimeState& state, pid_t pid) noexcept { __atomic_store_n(&state.pid, pid, __ATOMIC_RELAXED); }
void forget_devices(RuntimeState& state) noexcept {
  for (DeviceSlot& slot : state.devices) {
    __atomic_store_n(&slot.context, nullptr, __ATOMIC_RELEASE);
    __atomic_store_n(&slot.number, -1, __ATOMIC_RELAXED);
  }
}

// In the child every object of the parent is inert (R4): the session moves on, and open() starts anew.
void begin_in_child(RuntimeState& state) noexcept {
  if (state.session_word == nullptr) return;  // it had no runtime
  end_own_session(state);
  state.first_session = state.own_session;
  state.initialised_here = false;
  state.calls_taken = false;
  set_pid(state, ::getpid());
  forget_devices(state);
}

Result<Session> open_locked() noexcept {
  RuntimeState& state = the_state();
  static bool chosen = false;
  bool begun = false;  // by looking for a device
  if (!chosen) {
    if (auto made = choose(state); !made) return made.error();
    chosen = true;
    begun = state.initialised_here;
  }
  if (state.pid != -1 && state.pid != ::getpid()) begin_in_child(state);
  if (state.open_session != 0 && state.open_session == state.session_now()) return Session{&state, state.open_session};

  // Objects of an earlier session are inert from here on.
  tell_session_ended();
  forget_devices(state);
  const acl::aclError code = state.table.aclInit(nullptr);
  if (code != 0 && code != acl::code::repeat_initialize) {
    return refusal(state, Operation::open_runtime, acl::Entry::aclInit, code, {}).with_note(keep_note(words_of(state)));
  }
  take_calls_of_session(state);
  state.initialised_here = code == 0 || begun;
  set_pid(state, ::getpid());
  state.open_session = state.session_now();
  (void)own_identity(Operation::open_runtime);  // read while there are descriptors: tickets name us by it
  return Session{&state, state.open_session};
}

// Gives back the count that Runtime::device() took on each.
void reset_devices(const RuntimeState& state) noexcept {
  for (std::size_t number = 0; number < max_devices; ++number) {
    if (state.devices[number].context == nullptr) continue;
    (void)state.table.aclrtResetDevice(static_cast<std::int32_t>(number));
  }
}

}  // namespace

template <>
const char RuntimeLayout<number_of_layout()>::in_library = 1;

void runtime_after_fork_in_child() noexcept { begin_in_child(the_state()); }

// A child that was born without its fork handlers, as by a raw clone, still has its parent's number as `pid`.
bool of_another_process(const Session& session) noexcept {
  const RuntimeState& state = state_of(*session.record);
  return session.number < state.first_session || __atomic_load_n(&state.pid, __ATOMIC_RELAXED) != ::getpid();
}

void* device_context(const RuntimeRecord& record, std::int32_t device) noexcept {
  if (device < 0 || static_cast<std::size_t>(device) >= max_devices) return nullptr;
  return __atomic_load_n(&state_of(record).devices[static_cast<std::size_t>(device)].context, __ATOMIC_ACQUIRE);
}

std::int32_t driver_number(const RuntimeRecord& record, std::int32_t device) noexcept {
  if (device < 0 || static_cast<std::size_t>(device) >= max_devices) return -1;
  return __atomic_load_n(&state_of(record).devices[static_cast<std::size_t>(device)].number, __ATOMIC_RELAXED);
}

std::int32_t local_number(const RuntimeRecord& record, std::int32_t driver) noexcept {
  std::uint32_t count = 0;
  if (record.table.aclrtGetDeviceCount(&count) != 0) return -1;
  for (std::int32_t device = 0; device < static_cast<std::int32_t>(count); ++device) {
    std::int32_t number = device;
    if (record.table.aclrtGetLogicDevIdByUserDevId != nullptr &&
        record.table.aclrtGetLogicDevIdByUserDevId(device, &number) != 0) {
      continue;
    }
    if (number == driver) return device;
  }
  return -1;
}

}  // namespace detail

Result<Runtime> Runtime::open() noexcept {
  const std::lock_guard lock(detail::mutex_of(detail::Lock::runtime));
  auto session = detail::open_locked();
  if (!session) return session.error();
  return Runtime(*session);
}

std::string_view Runtime::name() const noexcept { return detail::state_of(*session_.record).is_host ? "host" : "ascend"; }

std::string_view Runtime::origin() const noexcept { return detail::state_of(*session_.record).origin; }

Version Runtime::version() const noexcept {
  Version version;
  if (auto* const get = session_.record->table.aclrtGetVersion; get != nullptr) {
    if (get(&version.major, &version.minor, &version.patch) != 0) version = {};
  }
  return version;
}

bool Runtime::has(acl::Entry entry) const noexcept {
  switch (entry) {
#define DEVSHARE_HAS(name, result, parameters, need, since) \
  case acl::Entry::name: return session_.record->table.name != nullptr;
    DEVSHARE_ACL_ENTRIES(DEVSHARE_HAS)
#undef DEVSHARE_HAS
    case acl::Entry::none: break;
  }
  return false;
}

Result<std::uint32_t> Runtime::device_count() const noexcept {
  if (!session_.alive()) return detail::unusable(session_, Operation::query_device);
  std::uint32_t count = 0;
  const acl::aclError code = session_.record->table.aclrtGetDeviceCount(&count);
  if (code == 0) return count;
  return detail::refusal(*session_.record, Operation::query_device, acl::Entry::aclrtGetDeviceCount, code, {});
}

Result<Device> Runtime::device(DeviceId id) const noexcept {
  const auto number = static_cast<std::int32_t>(id);
  if (!session_.alive()) return detail::unusable(session_, Operation::open_device);
  const std::lock_guard lock(detail::mutex_of(detail::Lock::runtime));
  detail::RuntimeState& state = detail::state_of(*session_.record);
  if (number < 0 || static_cast<std::size_t>(number) >= detail::max_devices) {
    return Error(Errc::no_such_device, Operation::open_device, {.device = number});
  }
  detail::DeviceSlot& slot = state.devices[static_cast<std::size_t>(number)];
  if (slot.context != nullptr) return detail::device_of(session_, number);

  const auto refuse = [&](acl::Entry entry, acl::aclError code) {
    return detail::refusal(state, Operation::open_device, entry, code, {.device = number});
  };
  // One count on the device is kept for the process (see CurrentDevice). The thread gets back what it had: the second
  // SetDevice pairs with the ResetDevice that leaves a thread without a context where it had none.
  void* const previous = detail::current_context(state);
  if (const acl::aclError code = state.table.aclrtSetDevice(number); code != 0) {
    return refuse(acl::Entry::aclrtSetDevice, code);
  }
  void* context = nullptr;
  if (const acl::aclError code = state.table.aclrtGetCurrentContext(&context); code != 0) {
    (void)state.table.aclrtResetDevice(number);
    return refuse(acl::Entry::aclrtGetCurrentContext, code);
  }
  if (previous != nullptr) {
    (void)state.table.aclrtSetCurrentContext(previous);
  } else if (state.table.aclrtSetDevice(number) == 0) {
    (void)state.table.aclrtResetDevice(number);
  }
  std::int32_t driver = number;
  if (state.table.aclrtGetLogicDevIdByUserDevId != nullptr &&
      state.table.aclrtGetLogicDevIdByUserDevId(number, &driver) != 0) {
    driver = number;
  }
  __atomic_store_n(&slot.number, driver, __ATOMIC_RELAXED);
  __atomic_store_n(&slot.context, context, __ATOMIC_RELEASE);
  return detail::device_of(session_, number);
}

std::string_view Runtime::device_state_scope() const noexcept {
  return detail::state_of(*session_.record).is_host ? host::ledger_scope() : std::string_view("driver");
}

Parked Runtime::parked() const noexcept { return detail::parked_now(); }

Result<void> Runtime::finalize() const noexcept {
  const std::lock_guard lock(detail::mutex_of(detail::Lock::runtime));
  if (!session_.alive()) return detail::unusable(session_, Operation::finalize_runtime);
  detail::RuntimeState& state = detail::state_of(*session_.record);
  detail::end_own_session(state);
  detail::tell_session_ended();
  const bool ends_runtime = std::exchange(state.initialised_here, false);
  // A reset waits for all that is in the device's streams, and nobody could record any more what one of them waits for.
  // The host runtime's own end waits for what has begun, drops the rest, and resets the devices.
  if (!ends_runtime || !state.is_host) detail::reset_devices(state);
  Result<void> ended;
  if (ends_runtime) {
    if (const acl::aclError code = state.table.aclFinalize(); code != 0) {
      ended = detail::refusal(state, Operation::finalize_runtime, acl::Entry::aclFinalize, code, {});
      if (state.is_host) detail::reset_devices(state);  // it has not
    }
  }
  detail::forget_devices(state);
  return ended;
}

}  // namespace devshare
