// SPDX-License-Identifier: Apache-2.0
// A program that was compiled with headers of another layout than its library's does not start: it would call through
// the wrong places of the table.
#include "support/catch.hpp"
#include "support/child.hpp"

#include <string>

using namespace devshare::test;

TEST_CASE("a program starts with the library of its headers") {
  // Without what Meson sets for tests, which has both libraries; the program knows the place of its own.
  const ChildEnd end = run_program({DEVSHARE_LAYOUT_PROGRAM}, {.set = {{"LD_LIBRARY_PATH", ""}}});
  INFO(end.in_words());
  CHECK(end.good());
}

TEST_CASE("a program does not start with a library of another layout, and the loader names the layout") {
  const ChildEnd end = run_program({DEVSHARE_LAYOUT_PROGRAM}, {.set = {{"LD_LIBRARY_PATH", DEVSHARE_LAYOUT_OTHER}}});
  INFO(end.in_words());
  CHECK_FALSE(end.good());
  CHECK_THAT(end.output, contains("layout_program: undefined symbol") && contains("RuntimeLayout"));
}
