// SPDX-License-Identifier: Apache-2.0
// What another process or thread does in its own time is waited for, never assumed.
#pragma once

#include <chrono>
#include <thread>

namespace devshare::test {

// Whether `condition` becomes true before a test counts it as never.
template <class Condition>
bool soon(Condition condition, std::chrono::milliseconds never = std::chrono::seconds(10)) {
  for (int i = 0; i < never / std::chrono::milliseconds(5); ++i) {
    if (condition()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return false;
}

}  // namespace devshare::test
