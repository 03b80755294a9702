// SPDX-License-Identifier: Apache-2.0
#include "profile.hpp"

#include "failure.hpp"
#include "instrument.hpp"
#include "switches.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>
#include <optional>

namespace devshare::host {
namespace {

struct Store {
  std::mutex mutex;
  std::atomic<const Profile*> current{nullptr};
  std::map<std::string, std::string, std::less<>> overrides;  // by whole variable name
  std::string error;
  // Every profile that was ever in force: references to them outlive the session they belonged to.
  std::vector<std::unique_ptr<const Profile>> all;
};

// Immortal: calls after the destruction of statics still ask.
Store& store() {
  static Store& made = *new Store;
  return made;
}

std::optional<std::string> value_of(const Store& from, std::string_view variable) {
  if (const auto set = from.overrides.find(variable); set != from.overrides.end()) return set->second;
  if (const char* text = std::getenv(std::string(variable).c_str())) return text;
  return std::nullopt;
}

bool is_switch(std::string_view variable) {
  for (const Switch& known : switches()) {
    if (known.variable == variable) return true;
  }
  return false;
}

// A misspelt switch is no switch: it would be a test that silently tests something else.
std::string unknown_switch() {
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const std::string_view name = text.substr(0, text.find('='));
    if (!name.starts_with(switch_prefix) || is_switch(name)) continue;
    std::string known;
    for (const Switch& row : switches()) known += fmt::format("{}{}", known.empty() ? "" : ", ", row.variable);
    return fmt::format("{} is no switch of the host runtime. The switches are: {}.", text, known);
  }
  return {};
}

// Builds a profile from everything that is set. Returns what was not understood, or nothing.
std::string build(const Store& from, Profile& profile) {
  if (std::string unknown = unknown_switch(); !unknown.empty()) return unknown;
  for (const Switch& row : switches()) {
    const std::optional<std::string> value = value_of(from, row.variable);
    if (value && !row.apply(profile, *value)) {
      return fmt::format("{}={} cannot be understood. Expected: {}.", row.variable, *value, row.expected);
    }
    const auto count = static_cast<std::size_t>(profile.device_count);
    if (row.variable == "DEVSHARE_HOST_PEERS" && !value) profile.peers.assign(count * count, 1);
    if (row.variable == "ASCEND_RT_VISIBLE_DEVICES" && !value) {
      for (std::int32_t id = 0; id < profile.device_count; ++id) profile.visible.push_back(id);
    }
  }
  if (profile.huge_page < profile.normal_page) {
    return fmt::format(
        "DEVSHARE_HOST_NORMAL_PAGE={} is above the huge page of {} bytes. Set DEVSHARE_HOST_HUGE_PAGE too.",
        profile.normal_page, profile.huge_page);
  }
  return {};
}

// Under the store's mutex.
void read_switches(Store& into) {
  auto fresh = std::make_unique<Profile>();
  into.error = build(into, *fresh);
  const Profile* current = into.current.load(std::memory_order_relaxed);
  if (!into.error.empty()) {
    if (current != nullptr) return;
    fresh = std::make_unique<Profile>();  // something must be in force; callers see profile_error()
    fresh->peers.assign(4, 1);
    fresh->visible = {0, 1};
  }
  if (current != nullptr && *current == *fresh) return;
  if (into.error.empty()) into.error = instrument_configure(*fresh);
  into.current.store(fresh.get(), std::memory_order_release);
  into.all.push_back(std::move(fresh));
}

}  // namespace

bool Profile::supports(acl::Entry call) const noexcept {
  switch (call) {
    case acl::Entry::aclrtIpcMemSetAttr:  // the document says A3; the vendor's source has it for 950 too
      return product == Product::a3 || product == Product::p950;
    case acl::Entry::aclrtIpcGetEventHandle:
    case acl::Entry::aclrtIpcOpenEventHandle:
    case acl::Entry::aclrtNotifyBatchReset:
      return product != Product::p310 && product != Product::training;
    case acl::Entry::aclrtNotifySetImportPidInterServer:
    case acl::Entry::aclrtIpcMemImportPidInterServer:
    case acl::Entry::aclrtReserveMemAddressNoUCMemory:
      return product == Product::a3;
    case acl::Entry::aclrtHostRegister:
    case acl::Entry::aclrtHostRegisterV2:
      return product == Product::a2 || product == Product::a3 || product == Product::p950;
    default:
      return true;
  }
}

const Profile& profile() {
  Store& from = store();
  if (const Profile* current = from.current.load(std::memory_order_acquire)) return *current;
  const std::lock_guard lock(from.mutex);
  if (from.current.load(std::memory_order_relaxed) == nullptr) read_switches(from);
  return *from.current.load(std::memory_order_relaxed);
}

acl::aclError load_profile() {
  Store& into = store();
  const std::lock_guard lock(into.mutex);
  read_switches(into);
  if (into.error.empty()) return acl::code::success;
  return refuse(acl::code::invalid_param, Reason::bad_switch, into.error);
}

std::string profile_error() {
  (void)profile();
  Store& from = store();
  const std::lock_guard lock(from.mutex);
  return from.error;
}

bool override_switch(std::string_view name, std::string_view value) {
  std::string variable(name);
  if (!is_switch(variable)) variable.insert(0, switch_prefix);
  if (!is_switch(variable)) return false;
  Store& into = store();
  const std::lock_guard lock(into.mutex);
  into.overrides.insert_or_assign(std::move(variable), std::string(value));
  return true;
}

void drop_switch_overrides() {
  Store& into = store();
  const std::lock_guard lock(into.mutex);
  into.overrides.clear();
}

std::string_view product_name(Product product) noexcept {
  switch (product) {
    case Product::a2:
      return "a2";
    case Product::a3:
      return "a3";
    case Product::training:
      return "training";
    case Product::p310:
      return "310p";
    case Product::p950:
      return "950";
  }
  return "unknown";
}

void profile_lock() { store().mutex.lock(); }
void profile_unlock() { store().mutex.unlock(); }

}  // namespace devshare::host
