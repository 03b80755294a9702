// SPDX-License-Identifier: Apache-2.0
// What is common to all calls, written once around each body of calls.hpp and generated from the entry list: the checks
// of process and session, the gate, injected faults and delays, the text of the last error, the journal.
#include "call_arguments.hpp"
#include "calls.hpp"
#include "failure.hpp"
#include "host_runtime.hpp"
#include "instrument.hpp"
#include "lifecycle.hpp"
#include "profile.hpp"

#include <fmt/format.h>

#include <chrono>
#include <type_traits>

namespace devshare::host {
namespace {

using acl::Entry;

// What a call needs before its body may run.
enum class Need {
  nothing,      // also in a forked child
  own_process,  // not initialised, but not the parent's runtime either
  session,
};

constexpr Need need_of(Entry call) {
  switch (call) {
    case Entry::aclInit:                 // begins a child's own runtime
    case Entry::aclrtDeviceGetBareTgid:  // about the process, not about the runtime
    case Entry::aclGetRecentErrMsg:      // says what R4 is
      return Need::nothing;
    case Entry::aclFinalize:
    case Entry::aclFinalizeReference:
    case Entry::aclrtGetVersion:
    case Entry::aclrtGetSocName:
    case Entry::aclrtGetDeviceCount:
      return Need::own_process;
    default:
      return Need::session;
  }
}

[[gnu::cold]] acl::aclError refuse_in_child() {
  return refuse(acl::code::rt_context_null, Reason::forked,
                "the runtime belongs to the parent process: a forked child must not use what its parent initialised "
                "(R4). Call aclInit in the child, or start it by exec");
}

[[gnu::cold]] acl::aclError refuse_without_session() {
  if (in_forked_child()) return refuse_in_child();
  return refuse(acl::code::uninitialize, Reason::not_initialised, "aclInit has not been called, or aclFinalize has");
}

// As near as a call that is linked can come to one that is not there.
[[gnu::cold]] acl::aclError refuse_hidden(Entry call) {
  const std::string_view since = release_names[first_release(call)];
  return refuse(acl::code::rt_feature_not_support, Reason::unsupported,
                fmt::format("CANN {} has no such call: it came {}{} (DEVSHARE_HOST_INTERFACE)",
                            release_names[profile().interface], since.starts_with("after") ? "" : "with ", since));
}

// Runs the body of a call that the release has which is played.
template <Entry entry, class Run>
auto run_if_there(Run run) {
  if constexpr (first_release(entry) != 0) {
    static_assert(std::is_same_v<decltype(run()), acl::aclError>, "every release has the calls that return a text");
    if (first_release(entry) > profile().interface) [[unlikely]]
      return refuse_hidden(entry);
  }
  return run();
}

std::uint64_t now_ns() {
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
          .count());
}

template <Entry entry, class Run>
[[gnu::always_inline]] inline auto checked(ThreadCall& thread, Run run) {
  using Result = decltype(run());
  constexpr Need need = need_of(entry);
  const auto refused_with = [](acl::aclError code) -> Result {
    if constexpr (std::is_same_v<Result, acl::aclError>) {
      return code;
    } else {
      return nullptr;
    }
  };
  if constexpr (need == Need::session) {
    if (!initialised()) [[unlikely]]
      return refused_with(refuse_without_session());
    const CallGate gate(thread);
    if (!initialised()) [[unlikely]]
      return refused_with(refuse_without_session());  // finalized at this moment
    return run_if_there<entry>(run);
  } else {
    if (need == Need::own_process && in_forked_child()) [[unlikely]]
      return refused_with(refuse_in_child());
    return run_if_there<entry>(run);
  }
}

template <Entry entry, auto body>
struct Wrapped;

template <Entry entry, class... Arguments, acl::aclError (*body)(Arguments...)>
struct Wrapped<entry, body> {
  static acl::aclError call(Arguments... arguments) {
    ThreadCall& thread = find_this_call();
    call_begins(thread);
    const acl::aclError code = !instrument_armed() ? checked<entry>(thread, [&] { return body(arguments...); })
                                                   : watched(thread, arguments...);
    call_ends(entry, code, thread);
    return code;
  }

 private:
  [[gnu::cold, gnu::noinline]] static acl::aclError watched(ThreadCall& thread, Arguments... arguments) {
    const std::uint64_t started = now_ns();
    const acl::aclError code = checked<entry>(thread, [&] {
      const acl::aclError injected = instrument_before(entry);
      return injected != 0 ? injected : body(arguments...);
    });
    // A child has its parent's journal only after its own aclInit.
    if (!in_forked_child()) instrument_after(entry, code, arguments_as_json(entry, code, arguments...), started);
    return code;
  }
};

// The two that return a text do not fail and are no part of the journal. aclGetRecentErrMsg must leave alone what it
// reports.
template <Entry entry, class... Arguments, const char* (*body)(Arguments...)>
struct Wrapped<entry, body> {
  static const char* call(Arguments... arguments) {
    return checked<entry>(this_call, [&] { return body(arguments...); });
  }
};

constexpr acl::Table make_table() {
  acl::Table entries;
#define DEVSHARE_HOST_ENTRY(name, result, parameters, need, since) \
  entries.name = Wrapped<Entry::name, &calls::name>::call;
  DEVSHARE_ACL_ENTRIES(DEVSHARE_HOST_ENTRY)
#undef DEVSHARE_HOST_ENTRY
  return entries;
}

constexpr acl::Table entries = make_table();

}  // namespace

const acl::Table& table() noexcept { return entries; }

}  // namespace devshare::host
