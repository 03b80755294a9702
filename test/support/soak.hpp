// SPDX-License-Identifier: Apache-2.0
// How often over a test does what it repeats: once, and in the suite `soak`, where time does not matter, as often as
// DEVSHARE_TEST_SOAK says.
#pragma once

#include <cstdlib>

namespace devshare::test {

inline int times_over() {
  const char* const text = std::getenv("DEVSHARE_TEST_SOAK");
  const int times = text != nullptr ? std::atoi(text) : 1;
  return times > 1 ? times : 1;
}

}  // namespace devshare::test
