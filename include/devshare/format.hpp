// SPDX-License-Identifier: Apache-2.0
// Text for errors: fmt::format("{}", error). The only public header that needs fmt.
//
//   {}   one line: what was tried, why it failed, the code by name, what to do
//   {:l} several lines: the same with the numbers, the rule and every cause
#pragma once

#include <devshare/explain.hpp>
#include <devshare/result.hpp>

#include <string>

#include <fmt/format.h>

namespace devshare {

// All there is to say of an error.
DEVSHARE_API std::string to_string(const Error& error, bool long_form = false);

}  // namespace devshare

template <>
struct fmt::formatter<devshare::Error> {
  bool long_form = false;

  constexpr auto parse(fmt::format_parse_context& context) {
    auto at = context.begin();
    if (at != context.end() && *at == 'l') {
      long_form = true;
      ++at;
    }
    return at;
  }
  template <class Context>
  auto format(const devshare::Error& error, Context& context) const {
    auto out = context.out();
    for (const char c : devshare::to_string(error, long_form)) *out++ = c;  // format_to makes all of fmt anew
    return out;
  }
};

template <class Input>
struct fmt::formatter<devshare::Refused<Input>> : fmt::formatter<devshare::Error> {
  template <class Context>
  auto format(const devshare::Refused<Input>& refused, Context& context) const {
    return fmt::formatter<devshare::Error>::format(refused.error(), context);
  }
};
