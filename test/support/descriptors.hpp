// SPDX-License-Identifier: Apache-2.0
// The open descriptors of this process.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace devshare::test {

// What each stands for, as in /proc/self/fd, sorted: "3 /memfd:name (deleted)". Without the one that reads the list.
std::vector<std::string> open_descriptors();
std::size_t count_descriptors();

}  // namespace devshare::test
