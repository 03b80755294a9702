// SPDX-License-Identifier: Apache-2.0
// The main of every example, once the options are read.
#pragma once

#include <devshare/format.hpp>
#include <devshare/result.hpp>

#include <cstdio>
#include <exception>
#include <string_view>

#include <fmt/format.h>

namespace examples {

// Runs the body; what it returns or throws as an error goes to stderr with the program's name. Returns the exit status.
template <class Body>
int run(std::string_view program, Body&& body) {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);  // whole lines, also into a pipe that several processes share
  try {
    const devshare::Result<void> done = body();
    if (done) return 0;
    fmt::print(stderr, "{}: {:l}\n", program, done.error());
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}: {}\n", program, error.what());
  }
  return 1;
}

}  // namespace examples
