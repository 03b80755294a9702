// SPDX-License-Identifier: Apache-2.0
#include <devshare/deadline.hpp>

#include <time.h>

namespace devshare::detail {

std::int64_t monotonic_now() noexcept {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::int64_t>(now.tv_sec) * 1'000'000'000 + now.tv_nsec;
}

}  // namespace devshare::detail
