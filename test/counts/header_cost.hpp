// SPDX-License-Identifier: Apache-2.0
// What it costs to include a header: exact in lines, nearly so in memory, never in seconds.
#pragma once

#include <string>
#include <vector>

namespace devshare::test {

// What a header may cost with g++ 12.
struct HeaderBound {
  const char* name;
  long most_lines;  // that g++ -E -P leaves
  double most_mib;  // of memory to compile an empty program with it; one machine differs from another by 1 %
};
inline constexpr HeaderBound header_bounds[] = {
    {"devshare/memory.hpp", 36'000, 80},
    {"devshare/exported.hpp", 36'000, 80},
    {"devshare/imported.hpp", 36'000, 80},
    {"devshare/devshare.hpp", 55'000, 110},
};

struct HeaderCost {
  std::string problem;              // what the compiler said, when it failed
  long lines = 0;                   // that g++ -E -P leaves
  double peak_mib = 0;              // the most memory g++ -O0 needs to compile an empty program with it
  std::vector<std::string> headers;  // every file that is read, by its path
};

// `lines_only` leaves the memory at 0. The compiler is the g++ that the build found, the flags those a user needs.
HeaderCost cost_of_including(const std::vector<std::string>& includes, bool lines_only = false);

// The major version of that g++; 0 when there is none.
int gxx_version();

}  // namespace devshare::test
