// SPDX-License-Identifier: Apache-2.0
#include "locks.hpp"
#include "runtime_state.hpp"

#include <devshare/diagnostic.hpp>
#include <devshare/explain.hpp>

#include <utility>

#include <unistd.h>

#include <fmt/format.h>

namespace devshare {
namespace {

std::string_view describe(DiagnosticEvent event) noexcept {
  switch (event) {
    case DiagnosticEvent::close_failed: return "a destructor could not release what it owned";
    case DiagnosticEvent::memory_parked: return "memory is kept, because what uses it could not be ended";
    case DiagnosticEvent::runtime_was_gone: return "objects outlived their runtime; they release nothing";
  }
  return "";
}

void print_line(const Diagnostic& diagnostic, void*) {
  char line[256];
  const auto end = fmt::format_to_n(line, sizeof line - 1, "devshare: {}: {} ({}, code {})", describe(diagnostic.event),
                                    explain(diagnostic.error).summary, name_of(diagnostic.error.operation()),
                                    diagnostic.error.acl_code());
  *end.out = '\n';
  // A report has nowhere to report its own failure.
  [[maybe_unused]] const auto written = ::write(STDERR_FILENO, line, static_cast<std::size_t>(end.out - line) + 1);
}

DiagnosticHandler handler{print_line, nullptr};  // guarded by Lock::diagnostics

}  // namespace

DiagnosticHandler set_diagnostic_handler(DiagnosticHandler replacement) noexcept {
  const std::lock_guard lock(detail::mutex_of(detail::Lock::diagnostics));
  return std::exchange(handler, replacement);
}

namespace detail {

void report(const Diagnostic& diagnostic) noexcept {
  DiagnosticHandler current;
  {
    const std::lock_guard lock(mutex_of(Lock::diagnostics));
    current = handler;
  }
  if (current.hook == nullptr) return;
#if defined(__cpp_exceptions)
  try {
    current.hook(diagnostic, current.user);
  } catch (...) {
    // A hook that throws out of a destructor would end the program (B089).
  }
#else
  current.hook(diagnostic, current.user);
#endif
}

void report_outlived(const Session& session) noexcept {
  RuntimeState& state = state_of(*session.record);
  if (of_another_process(session)) return;
  std::uint64_t reported = __atomic_load_n(&state.outlived_reported, __ATOMIC_RELAXED);
  if (reported == session.number) return;
  if (!__atomic_compare_exchange_n(&state.outlived_reported, &reported, session.number, false, __ATOMIC_RELAXED,
                                   __ATOMIC_RELAXED)) {
    return;
  }
  report({DiagnosticEvent::runtime_was_gone, Error(Errc::runtime_gone, Operation::none), nullptr});
}

}  // namespace detail
}  // namespace devshare
