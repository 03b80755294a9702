// SPDX-License-Identifier: Apache-2.0
#include "leak_report.hpp"

#include "lifecycle.hpp"
#include "profile.hpp"

#include <devshare/instrument.hpp>

#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

namespace devshare::host {
namespace {

// Peer access that imports enabled stays until the process ends, and connections are kept: nobody could give them back.
Counters that_can_be_given_back() {
  Counters left = counters();
  left.connections = 0;
  left.peer_grants = 0;
  left.views = 0;
  left.descriptors = 0;
  return left;
}

void at_exit() {
  if (initialised()) report_leaks();
}

}  // namespace

void watch_for_leaks() {
  if (!profile().leaks_reported) return;
  static const int registered = std::atexit(&at_exit);
  static_cast<void>(registered);
}

void report_leaks() {
  if (!profile().leaks_reported) return;
  const Counters left = that_can_be_given_back();
  if (left == Counters{}) return;
  const std::string line = fmt::format("devshare: process {} ends with {}\n", ::getpid(), in_words(left));
  // A report has nowhere to report its own failure.
  [[maybe_unused]] const auto written = ::write(STDERR_FILENO, line.data(), line.size());
}

}  // namespace devshare::host
