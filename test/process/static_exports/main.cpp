// SPDX-License-Identifier: Apache-2.0
#include "exports.hpp"

#include <cstdio>

int main() {
  const std::size_t made = export_from_a(334) + export_from_b(333) + export_from_c(333);
  std::printf("%zu exports\n", made);
  return made == 1000 ? 0 : 1;
}
