// SPDX-License-Identifier: Apache-2.0
// The one hook through which destructors report. Everything else returns its error.
#pragma once

#include <devshare/error.hpp>

namespace devshare {

enum class DiagnosticEvent : std::uint8_t {
  close_failed,         // a destructor could not release what it owned; the error says what and why
  memory_parked,        // memory was kept: its key could not be closed, or it could not be unmapped (Runtime::parked)
  runtime_was_gone,     // objects outlived their runtime; reported once
};

struct Diagnostic {
  DiagnosticEvent event;
  Error error;
  const void* object;  // address of the device memory concerned, to match with other records; may be null
};

// Called on the thread where it happened, with no lock of devshare held, so it may call devshare. An exception that
// leaves it is contained. The default prints one line to stderr; null silences. Returns the hook that was set before.
using DiagnosticHook = void (*)(const Diagnostic& diagnostic, void* user);
struct DiagnosticHandler {
  DiagnosticHook hook = nullptr;
  void* user = nullptr;
};
DEVSHARE_API DiagnosticHandler set_diagnostic_handler(DiagnosticHandler handler) noexcept;

namespace detail {
struct Session;
DEVSHARE_API void report(const Diagnostic& diagnostic) noexcept;
// Once a session: an object lived longer than its runtime. Nothing in a forked child, where that is the rule (R4).
DEVSHARE_API void report_outlived(const Session& session) noexcept;
}  // namespace detail

}  // namespace devshare
