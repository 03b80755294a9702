// SPDX-License-Identifier: Apache-2.0
// aclInit, aclFinalize, aclFinalizeReference and what they count (R2).
#include "lifecycle.hpp"

#include "block.hpp"
#include "call_gate.hpp"
#include "calls.hpp"
#include "device.hpp"
#include "events.hpp"
#include "exports.hpp"
#include "failure.hpp"
#include "fork.hpp"
#include "imports.hpp"
#include "init_config.hpp"
#include "leak_report.hpp"
#include "ledger.hpp"
#include "notifies.hpp"
#include "per_process.hpp"
#include "physical.hpp"
#include "process_page.hpp"
#include "profile.hpp"
#include "registration.hpp"
#include "reservation.hpp"
#include "streams.hpp"
#include "token_imports.hpp"
#include "unique_fd.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <mutex>
#include <optional>
#include <string>
#include <system_error>
#include <utility>

namespace devshare::host {
namespace {

struct State : ProcessState<State> {
  std::uint64_t references = 0;  // aclInit calls that aclFinalizeReference has not answered
  std::optional<std::string> config;

  void close_inherited() noexcept {}
};

PerProcess<State> state;

// Grows through all sessions of a process and its parents; odd numbers are sessions.
constinit std::atomic<std::uint32_t> last_session{0};

// process_generation() + 1 of the process that is initialised; a child has its parent's. 0: nobody.
constinit std::atomic<std::uint32_t> initialised_process{0};

void begin_session() {
  const std::uint32_t number = (last_session.load(std::memory_order_relaxed) + 1) | 1;
  last_session.store(number, std::memory_order_relaxed);
  initialised_process.store(process_generation() + 1, std::memory_order_relaxed);
  set_session(number);
}

void end_session() {
  const std::uint32_t number = last_session.load(std::memory_order_relaxed) + 1;
  last_session.store(number, std::memory_order_relaxed);
  initialised_process.store(0, std::memory_order_relaxed);
  set_session(number);
}

// Null and the empty path ask for nothing.
acl::aclError read_config(const char* path, std::optional<std::string>* out) {
  if (path == nullptr || *path == '\0') return 0;
  const auto unreadable = [&] {
    return refuse(acl::code::invalid_file, {.reason = Reason::bad_argument, .system_errno = errno},
                  fmt::format("the configuration {} cannot be read: {}", path, std::generic_category().message(errno)));
  };
  const UniqueFd file(::open(path, O_RDONLY | O_CLOEXEC));
  if (!file) return unreadable();
  std::string content;
  std::array<char, 4096> piece;
  for (;;) {
    const ssize_t got = ::read(file.get(), piece.data(), piece.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return unreadable();
    if (got == 0) break;
    content.append(piece.data(), static_cast<std::size_t>(got));
  }
  *out = std::move(content);
  return 0;
}

// DEVSHARE_HOST_RAISE_NOFILE=1: as many descriptors as the hard limit permits. Never without being asked.
acl::aclError raise_descriptor_limit() {
  if (!profile().raise_nofile) return 0;
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  if (limit.rlim_cur == limit.rlim_max) return 0;
  limit.rlim_cur = limit.rlim_max;
  if (::setrlimit(RLIMIT_NOFILE, &limit) == 0) return 0;
  return refuse(acl::code::rt_resource_alloc_fail,
                {.reason = Reason::descriptor_limit, .system_errno = errno, .needed = limit.rlim_max},
                "DEVSHARE_HOST_RAISE_NOFILE=1, and the system does not let RLIMIT_NOFILE be raised to its hard limit");
}

acl::aclError start(const char* config_path, State& all) {
  std::optional<std::string> config;
  InitConfig asked;
  if (const acl::aclError code = read_config(config_path, &config)) return code;
  if (config) {
    if (const acl::aclError code = read_init_config(*config, config_path, &asked)) return code;
  }
  if (const acl::aclError code = load_profile()) return code;
  if (const acl::aclError code = raise_descriptor_limit()) return code;
  if (const acl::aclError code = blocks_start()) return code;
  install_fork_handlers();
  all.config = std::move(config);
  all.references = 1;
  keep_recent_messages(asked.error_texts_of_process ? TextsOf::process : TextsOf::thread);
  open_gate();
  begin_session();
  watch_for_leaks();
  return 0;
}

acl::aclError start_again(const char* config_path, State& all) {
  std::optional<std::string> config;
  if (const acl::aclError code = read_config(config_path, &config)) return code;
  if (config && config != all.config) {
    return refuse(acl::code::invalid_param, Reason::bad_argument,
                  fmt::format("the runtime is initialised with another configuration than {}", config_path));
  }
  ++all.references;
  return refuse(acl::code::repeat_initialize, Reason::none,
                fmt::format("initialised already; harmless, and counted: {} references (R2)", all.references));
}

void stop(State& all) {
  report_leaks();
  streams_close();
  close_gate();
  end_session();
  all.references = 0;
  all.config.reset();
  streams_shut_down();
  events_shut_down();
  notifies_shut_down();
  imports_shut_down();
  token_imports_shut_down();
  exports_shut_down();
  registrations_shut_down();
  reservations_shut_down();
  handles_shut_down();
  blocks_shut_down();
  devices_shut_down();
  ledger_shut_down();
  open_gate();
}

acl::aclError finalized_already() {
  return refuse(acl::code::repeat_finalize, Reason::not_initialised, "the runtime is not initialised (R2)");
}

}  // namespace

std::uint64_t* session_word() noexcept {
  static_assert(sizeof(std::atomic<std::uint64_t>) == sizeof(std::uint64_t));
  return reinterpret_cast<std::uint64_t*>(&process_page().session);
}

bool in_forked_child() noexcept {
  const std::uint32_t owner = initialised_process.load(std::memory_order_relaxed);
  return owner != 0 && owner != process_generation() + 1;
}

void lifecycle_before_fork() { state.before_fork(); }

void lifecycle_after_fork_in_parent() { state.after_fork_in_parent(); }

void lifecycle_after_fork_in_child() {
  wipe_process_page();
  state.after_fork_in_child();
}

acl::aclError calls::aclInit(const char* configPath) {
  State& all = state.get();
  const std::lock_guard lock(all.mutex);
  return all.references == 0 ? start(configPath, all) : start_again(configPath, all);
}

acl::aclError calls::aclFinalize() {
  State& all = state.get();
  const std::lock_guard lock(all.mutex);
  if (all.references == 0) return finalized_already();
  stop(all);
  return 0;
}

acl::aclError calls::aclFinalizeReference(std::uint64_t* refCount) {
  State& all = state.get();
  const std::lock_guard lock(all.mutex);
  if (refCount != nullptr) *refCount = all.references == 0 ? 0 : all.references - 1;
  if (all.references == 0) return finalized_already();
  if (all.references == 1) {
    stop(all);
  } else {
    --all.references;
  }
  return 0;
}

}  // namespace devshare::host
