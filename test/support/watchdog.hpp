// SPDX-License-Identifier: Apache-2.0
// Ends the process, with a text, when a scope takes longer than it ever should: the one maximum a test may have.
// One at a time in a process. A forked child has none.
#pragma once

#include <chrono>
#include <string>

namespace devshare::test {

class Watchdog {
 public:
  explicit Watchdog(std::string what, std::chrono::seconds limit = std::chrono::seconds(60));
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

 private:
  std::string text_;
};

}  // namespace devshare::test
