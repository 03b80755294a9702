// SPDX-License-Identifier: Apache-2.0
#include "expect.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

namespace conformance {
namespace {

std::string running_rule() { return Catch::getResultCapture().getCurrentTestName(); }

// Texts are the tests' own: nothing in them needs escaping.
void line(const std::string& json) {
  const char* const path = std::getenv("DEVSHARE_TEST_RECORD");
  if (path == nullptr) return;
  std::FILE* const file = std::fopen(path, "a");
  if (file == nullptr) FAIL("no record can be written to " << path);
  std::fprintf(file, "%s\n", json.c_str());
  std::fclose(file);
}

}  // namespace

bool Expected::allows(aclError code) const {
  return codes_.empty() ? code != 0 : std::find(codes_.begin(), codes_.end(), code) != codes_.end();
}

std::string Expected::in_words() const {
  if (codes_.empty()) return "refused";
  std::string words;
  for (const aclError code : codes_) words += (words.empty() ? "" : " or ") + std::to_string(code);
  return words;
}

void record(const std::string& what, aclError got, const Expected& expected) {
  line("{\"rule\":\"" + running_rule() + "\",\"what\":\"" + what + "\",\"expected\":\"" + expected.in_words() +
       "\",\"got\":" + std::to_string(got) + "}");
}

void record_skipped(const std::string& why) {
  line("{\"rule\":\"" + running_rule() + "\",\"skipped\":\"" + why + "\"}");
}

}  // namespace conformance
