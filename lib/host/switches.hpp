// SPDX-License-Identifier: Apache-2.0
// The switches of the host runtime: one row for each environment variable, in the order in which they are applied.
#pragma once

#include "profile.hpp"

#include <span>
#include <string_view>

namespace devshare::host {

struct Switch {
  std::string_view variable;                               // whole name of the environment variable
  bool (*apply)(Profile& profile, std::string_view text);  // false: not understood
  std::string_view expected;                               // what would have been understood
};

inline constexpr std::string_view switch_prefix = "DEVSHARE_HOST_";

std::span<const Switch> switches() noexcept;

}  // namespace devshare::host
