// SPDX-License-Identifier: Apache-2.0
// What the diagnostic hook was told, for as long as the object lives. One at a time; what is told must come from one
// thread.
#pragma once

#include <devshare/diagnostic.hpp>

#include <vector>

namespace devshare::test {

class Reports {
 public:
  std::vector<Diagnostic> heard;

  Reports() : before_(set_diagnostic_handler({&Reports::hear, this})) {}
  ~Reports() { (void)set_diagnostic_handler(before_); }
  Reports(const Reports&) = delete;
  Reports& operator=(const Reports&) = delete;

 private:
  static void hear(const Diagnostic& diagnostic, void* self) { static_cast<Reports*>(self)->heard.push_back(diagnostic); }

  DiagnosticHandler before_;
};

}  // namespace devshare::test
