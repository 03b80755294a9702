// SPDX-License-Identifier: Apache-2.0
// What an importer says first, so that the exporter can choose a mechanism that both have.
#pragma once

#include <cstdint>

struct Introduction {
  std::int32_t bare_pid = 0;     // to be admitted
  std::uint32_t importable = 0;  // a set of mechanisms, by Mechanisms::to_message()
};
