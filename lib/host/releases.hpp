// SPDX-License-Identifier: Apache-2.0
// The releases of CANN, as the list of entries names them, and which calls each of them has.
#pragma once

#include <devshare/acl/table.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string_view>

namespace devshare::host {

// By place, oldest first. The last is no release yet: whoever plays it has every call of the list.
using Release = std::uint8_t;
inline constexpr std::string_view release_names[] = {"8.0", "8.2.RC1", "8.5.0", "9.0.0", "9.1.0", "after 9.1.0"};
inline constexpr Release newest_release = std::size(release_names) - 1;

// newest_release + 1: there is no such release.
constexpr Release release_by_name(std::string_view name) noexcept {
  Release release = 0;
  while (release <= newest_release && release_names[release] != name) ++release;
  return release;
}

// The first release that has each entry.
inline constexpr std::array<Release, acl::entry_count> release_of_entry{
#define DEVSHARE_HOST_RELEASE(name, result, parameters, need, since) release_by_name(since),
    DEVSHARE_ACL_ENTRIES(DEVSHARE_HOST_RELEASE)
#undef DEVSHARE_HOST_RELEASE
};

constexpr Release first_release(acl::Entry entry) noexcept { return release_of_entry[static_cast<std::size_t>(entry)]; }

}  // namespace devshare::host
