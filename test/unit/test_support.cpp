// SPDX-License-Identifier: Apache-2.0
// What tests/support promises to every other test.
#include "support/catch.hpp"
#include "support/temp_directory.hpp"

#include <sys/stat.h>

#include <cstdlib>
#include <fstream>
#include <string>

using devshare::test::TempDirectory;

namespace {
std::string state_of_an_earlier_case;
}

TEST_CASE("a case finds a state directory of its own in DEVSHARE_HOST_STATE") {
  const char* state = std::getenv("DEVSHARE_HOST_STATE");
  REQUIRE(state != nullptr);
  struct stat info {};
  REQUIRE(::stat(state, &info) == 0);
  CHECK((info.st_mode & 07777) == 0700);
  CHECK(state != state_of_an_earlier_case);
  state_of_an_earlier_case = state;
  ::setenv("DEVSHARE_HOST_DEVICES", "1", 1);
}

TEST_CASE("a case finds neither the state nor the settings of the one before it") {
  const char* state = std::getenv("DEVSHARE_HOST_STATE");
  REQUIRE(state != nullptr);
  CHECK(state != state_of_an_earlier_case);
  CHECK(std::getenv("DEVSHARE_HOST_DEVICES") == nullptr);
}

TEST_CASE("a temporary directory goes with all that is in it") {
  std::string path;
  {
    TempDirectory directory("gone");
    path = directory.path();
    std::ofstream(directory.file("content")) << "bytes";
    struct stat info {};
    REQUIRE(::stat(directory.file("content").c_str(), &info) == 0);
  }
  struct stat info {};
  CHECK(::stat(path.c_str(), &info) == -1);
}
