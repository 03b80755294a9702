// SPDX-License-Identifier: Apache-2.0
// Who may use a mapped piece, as a set: devices by their physical numbers, and the host.
#pragma once

#include "profile.hpp"

#include <cstdint>

namespace devshare::host {

inline constexpr std::int32_t the_host = -1;

constexpr std::uint32_t access_bit(std::int32_t who) noexcept {
  return std::uint32_t{1} << (who == the_host ? max_devices : who);
}

}  // namespace devshare::host
