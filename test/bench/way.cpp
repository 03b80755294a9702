// SPDX-License-Identifier: Apache-2.0
#include "way.hpp"

#include <cerrno>
#include <cstdio>
#include <cstring>

#include <unistd.h>

namespace devshare::bench {

void give_up(const std::string& what) {
  const int error = errno;
  std::fprintf(stderr, "%s%s%s\n", what.c_str(), error != 0 ? ": " : "", error != 0 ? std::strerror(error) : "");
  ::_exit(3);
}

}  // namespace devshare::bench
