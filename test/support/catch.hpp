// SPDX-License-Identifier: Apache-2.0
// Catch2, version 2 or 3, in the subset that both have: every test includes this and no header of Catch2 itself.
//
// Each case starts with an environment of its own: no DEVSHARE_* variable of the caller's, and a fresh directory in
// DEVSHARE_HOST_STATE, so that no two cases, nor two test programs at once, share the state of their devices.
#pragma once

#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_all.hpp>
#else
#include <catch2/catch.hpp>
#endif

#include <string>

namespace devshare::test {

#if __has_include(<catch2/catch_all.hpp>)
inline auto contains(const std::string& part) { return Catch::Matchers::ContainsSubstring(part); }
#else
inline auto contains(const std::string& part) { return Catch::Matchers::Contains(part); }
#endif

// Counts the running case as skipped, with its reason. Use DEVSHARE_SKIP, which also leaves the case.
void mark_skipped(const std::string& reason);

}  // namespace devshare::test

// Leaves the case: this machine cannot show it, and `reason` says why.
#define DEVSHARE_SKIP(reason)                \
  do {                                       \
    ::devshare::test::mark_skipped(reason);  \
    return;                                  \
  } while (false)
