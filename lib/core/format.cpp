// SPDX-License-Identifier: Apache-2.0
#include <devshare/format.hpp>

#include <iterator>
#include <system_error>

namespace devshare {
namespace {

void append_code(std::string& text, const Error& error) {
  if (error.entry() == acl::Entry::none && error.acl_code() == 0) return;
  if (error == Errc::runtime_incomplete || (error == Errc::unsupported_by_runtime && error.acl_code() == 0)) {
    fmt::format_to(std::back_inserter(text), " [{} is missing]", name_of(error.entry()));
    return;
  }
  const std::string_view name = name_of_acl_code(error.acl_code());
  fmt::format_to(std::back_inserter(text), " [{}: {}{}{}]", name_of(error.entry()), error.acl_code(),
                 name.empty() ? "" : " ", name);
}

// Each number that means something for this error, in one order.
void append_detail(std::string& text, const Error& error, std::string_view separator) {
  const Detail& detail = error.detail();
  const auto add = [&](std::string_view name, auto value) {
    fmt::format_to(std::back_inserter(text), "{}{} {}", separator, name, value);
  };
  if (detail.device >= 0) add("device", detail.device);
  if (detail.peer_device >= 0) add("peer device", detail.peer_device);
  if (detail.pid != 0) add("peer process", detail.pid);
  if (detail.needed != 0) add("needed", detail.needed);
  if (detail.needed != 0 && detail.available != 0) add("available", detail.available);
  if (detail.system_errno != 0) {
    add("system error", detail.system_errno);
    fmt::format_to(std::back_inserter(text), " ({})", std::generic_category().message(detail.system_errno));
  }
  if (error.reason() != Error::Reason::none) add("reason", name_of(error.reason()));
}

}  // namespace

std::string to_string(const Error& error, bool long_form) {
  const Explanation text = explain(error);
  std::string out = fmt::format("cannot {}: {} ({})", name_of(error.operation()), text.summary, name_of(error.kind()));
  append_code(out, error);
  if (!long_form) {
    if (!text.note.empty()) fmt::format_to(std::back_inserter(out), ": {}", text.note);
    append_detail(out, error, ", ");
    fmt::format_to(std::back_inserter(out), "; {}", text.remedy);
    return out;
  }
  if (!text.note.empty()) fmt::format_to(std::back_inserter(out), "\n  {}", text.note);
  append_detail(out, error, "\n  ");
  if (!text.rule.empty()) fmt::format_to(std::back_inserter(out), "\n  rule: {}", text.rule);
  for (const std::string_view cause : text.causes) fmt::format_to(std::back_inserter(out), "\n  perhaps: {}", cause);
  fmt::format_to(std::back_inserter(out), "\n  do: {}", text.remedy);
  return out;
}

}  // namespace devshare
