// SPDX-License-Identifier: Apache-2.0
// devshare/instrument.h: the instrument under names that C can call.
#include <devshare/instrument.h>
#include <devshare/instrument.hpp>

#include <cerrno>
#include <iterator>
#include <string_view>

namespace host = devshare::host;
using devshare::acl::Entry;

#define DEVSHARE_FOR_C extern "C" DEVSHARE_API

namespace {

constexpr struct {
  std::string_view name;
  std::uint64_t host::Counters::*value;
} counters_by_name[] = {
    {"allocations", &host::Counters::allocations},
    {"bytes", &host::Counters::bytes},
    {"imports", &host::Counters::imports},
    {"views", &host::Counters::views},
    {"descriptors", &host::Counters::descriptors},
    {"keys_exported", &host::Counters::keys_exported},
    {"keys_imported", &host::Counters::keys_imported},
    {"key_opens", &host::Counters::key_opens},
    {"connections", &host::Counters::connections},
    {"peer_grants", &host::Counters::peer_grants},
    {"handles", &host::Counters::handles},
    {"reservations", &host::Counters::reservations},
    {"mappings", &host::Counters::mappings},
    {"registrations", &host::Counters::registrations},
    {"tokens_exported", &host::Counters::tokens_exported},
    {"handles_imported", &host::Counters::handles_imported},
    {"streams", &host::Counters::streams},
    {"events", &host::Counters::events},
    {"notifies", &host::Counters::notifies},
};
static_assert(sizeof(host::Counters) == std::size(counters_by_name) * sizeof(std::uint64_t),
              "a counter has no name here");

int no_such_name() {
  errno = EINVAL;
  return -1;
}

// Does something with the entry of that name.
template <class Action>
int with_entry(const char* call, Action action) {
  const Entry entry = call != nullptr ? host::entry_by_name(call) : Entry::none;
  if (entry == Entry::none) return no_such_name();
  action(entry);
  return 0;
}

}  // namespace

DEVSHARE_FOR_C int devshare_host_active() { return host::active() ? 1 : 0; }

DEVSHARE_FOR_C int devshare_host_set(const char* name, const char* value) {
  return name != nullptr && value != nullptr && host::set(name, value) ? 0 : no_such_name();
}
DEVSHARE_FOR_C void devshare_host_unset_all() { host::unset_all(); }

DEVSHARE_FOR_C int devshare_host_fail(const char* call, std::uint32_t nth, int code) {
  return with_entry(call, [&](Entry entry) { host::fail(entry, nth, code); });
}
DEVSHARE_FOR_C int devshare_host_fail_with_probability(const char* call, double probability, std::uint64_t seed,
                                                       int code) {
  return with_entry(call, [&](Entry entry) { host::fail_with_probability(entry, probability, seed, code); });
}
DEVSHARE_FOR_C int devshare_host_delay(const char* call, std::uint32_t milliseconds) {
  return with_entry(call, [&](Entry entry) { host::delay(entry, milliseconds); });
}
DEVSHARE_FOR_C int devshare_host_fail_task(const char* call, std::uint32_t nth, int code) {
  return with_entry(call, [&](Entry entry) { host::fail_task(entry, nth, code); });
}
DEVSHARE_FOR_C int devshare_host_delay_task(const char* call, std::uint32_t milliseconds) {
  return with_entry(call, [&](Entry entry) { host::delay_task(entry, milliseconds); });
}
DEVSHARE_FOR_C void devshare_host_clear() { host::clear(); }

DEVSHARE_FOR_C int devshare_host_journal_to(const char* path) {
  return host::journal_to(path != nullptr ? path : "") ? 0 : -1;
}
DEVSHARE_FOR_C std::uint64_t devshare_host_journal_lines_lost() { return host::journal_lines_lost(); }

DEVSHARE_FOR_C int devshare_host_counter(const char* name, std::uint64_t* value) {
  if (name == nullptr || value == nullptr) return no_such_name();
  for (const auto& counter : counters_by_name) {
    if (counter.name != name) continue;
    *value = host::counters().*counter.value;
    return 0;
  }
  return no_such_name();
}

DEVSHARE_FOR_C std::uint64_t devshare_host_bytes_in_use(std::int32_t physical_device) {
  return host::bytes_in_use(physical_device);
}
DEVSHARE_FOR_C const char* devshare_host_device_state_scope() {
  return host::device_state_scope() == "machine" ? "machine" : "process";
}

DEVSHARE_FOR_C void* devshare_host_view(const void* device_address, std::size_t size, int writable) {
  return host::view_of(device_address, size, writable != 0 ? host::ViewAccess::read_write : host::ViewAccess::read);
}

DEVSHARE_FOR_C int devshare_host_launch(void* stream, void (*function)(void* argument), void* argument) {
  return host::launch(stream, function, argument);
}
