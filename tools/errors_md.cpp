// SPDX-License-Identifier: Apache-2.0
// Prints docs/errors.md from the tables behind Error and explain(). With a file name, compares the file with what it
// would print and fails where they differ: the page cannot fall behind the code.
//
//   errors_md > docs/errors.md
//   errors_md docs/errors.md
#include <devshare/explain.hpp>

#include <core/catalogue.hpp>
#include <core/runtime_state.hpp>

#include <cctype>
#include <fstream>
#include <iterator>
#include <map>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

using namespace devshare;

namespace {

constexpr std::string_view introduction = R"(# Errors

<!-- Printed by tools/errors_md.cpp from the tables in lib/core; a test compares the two. Do not edit: after a change
there, run `errors_md > docs/errors.md` from the build folder's tools/. -->

Every call that can fail returns a `Result`; what went wrong is an `Error`: a small value with its kind, the operation,
the ACL call and the code it returned, and the numbers of both ends. A program decides by `error.kind()`;
`fmt::format("{}", error)` (with `devshare/format.hpp`) gives one line for a log, `"{:l}"` all that stands here.

Rules are those of [rules.md](rules.md). Causes are in the order of their likelihood.
)";

constexpr std::string_view before_codes = R"(
## From the code of the runtime to a kind

507899 is the driver's answer to nearly everything, so by itself it says nothing: the operation decides, and for
`refused` the causes above are listed by operation. This is what becomes of each code of a runtime that gives no reason,
as the vendor's does. A code that is not here is `refused`.

| code | name | kind |
| --- | --- | --- |
)";

constexpr std::string_view before_reasons = R"(
## From the reason of the host runtime to a kind

The host runtime returns the same codes, and beside them says why (`error.reason()`). Its reason decides the kind.

| reason | kind |
| --- | --- |
)";

std::string sentence(std::string_view words) {
  std::string text(words);
  text[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(text[0])));
  return text + ".";
}

void print_entry(std::string& page, const detail::CatalogueEntry& entry) {
  auto out = std::back_inserter(page);
  if (entry.operation == Operation::none) {
    fmt::format_to(out, "\n### {}\n", name_of(entry.kind));
  } else {
    fmt::format_to(out, "\n#### {}: cannot {}\n", name_of(entry.kind), name_of(entry.operation));
  }
  fmt::format_to(out, "\n{}", sentence(entry.text.summary));
  if (const std::string_view rule = entry.text.rule; !rule.empty()) {
    const bool several = rule.find(' ') != rule.npos;
    fmt::format_to(out, " {} {}.", several ? "Rules" : "Rule", rule);
  }
  fmt::format_to(out, "\n\n");
  for (const std::string_view cause : entry.text.causes) fmt::format_to(out, "- {}\n", cause);
  fmt::format_to(out, "\nWhat to do: {}.\n", entry.text.remedy);
}

Errc kind_without_reason(Operation operation, acl::aclError code) {
  static const detail::RuntimeRecord vendor;  // no extras: it gives codes and nothing else
  return detail::refusal(vendor, operation, acl::Entry::none, code, {}).kind();
}

// "`out_of_memory`; enable peer access: `peer_access_limit`": what most operations say, then those that differ.
std::string kinds_of(acl::aclError code) {
  std::map<Errc, std::vector<Operation>> by_kind;
  for (int number = 1; number <= static_cast<int>(Operation::use_mapping); ++number) {
    const auto operation = static_cast<Operation>(number);
    by_kind[kind_without_reason(operation, code)].push_back(operation);
  }
  auto usual = by_kind.begin();
  for (auto at = by_kind.begin(); at != by_kind.end(); ++at) {
    if (at->second.size() > usual->second.size()) usual = at;
  }
  std::string text = fmt::format("`{}`", name_of(usual->first));
  for (auto at = by_kind.begin(); at != by_kind.end(); ++at) {
    if (at == usual) continue;
    for (const Operation operation : at->second) {
      fmt::format_to(std::back_inserter(text), "; {}: `{}`", name_of(operation), name_of(at->first));
    }
  }
  return text;
}

std::string make_page() {
  std::string page(introduction);
  auto out = std::back_inserter(page);
  fmt::format_to(out, "\n## The kinds\n");
  for (const detail::CatalogueEntry& entry : detail::catalogue()) print_entry(page, entry);

  page += before_codes;
  const auto print_code = [&](acl::aclError code) {
    const std::string kinds = kinds_of(code);
    if (code == 0 || kinds == "`refused`") return;
    fmt::format_to(out, "| {} | {} | {} |\n", code, name_of_acl_code(code), kinds);
  };
#define DEVSHARE_PRINT_CODE(name, value, text) print_code(value);
  DEVSHARE_ACL_CODES(DEVSHARE_PRINT_CODE)
#undef DEVSHARE_PRINT_CODE

  page += before_reasons;
  for (int number = 1; number <= static_cast<int>(detail::last_reason); ++number) {
    const auto reason = static_cast<Error::Reason>(number);
    if (reason == Error::Reason::injected) {
      fmt::format_to(out, "| {} | what the injected code is without a reason |\n", name_of(reason));
    } else {
      fmt::format_to(out, "| {} | `{}` |\n", name_of(reason), name_of(detail::kind_of(reason)));
    }
  }
  return page;
}

// The number of the first line in which the two differ; 0 when they do not.
int first_difference(const std::string& one, const std::string& other) {
  std::istringstream left(one);
  std::istringstream right(other);
  for (int number = 1;; ++number) {
    std::string a;
    std::string b;
    const bool more_left = static_cast<bool>(std::getline(left, a));
    const bool more_right = static_cast<bool>(std::getline(right, b));
    if (!more_left && !more_right) return one == other ? 0 : number;
    if (more_left != more_right || a != b) return number;
  }
}

int compare(const char* path, const std::string& page) {
  std::ifstream file(path, std::ios::binary);
  const std::string found{std::istreambuf_iterator<char>(file), {}};
  const int line = first_difference(page, found);
  if (line == 0) return 0;
  fmt::print(stderr, "{}:{}: not what the tables say; print it anew: errors_md > docs/errors.md\n", path, line);
  return 1;
}

}  // namespace

int main(int count, char** arguments) {
  const std::string page = make_page();
  if (count == 2) return compare(arguments[1], page);
  fmt::print("{}", page);
  return 0;
}
