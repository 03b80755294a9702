// SPDX-License-Identifier: Apache-2.0
#include <devshare/explain.hpp>
#include <devshare/result.hpp>

#include <cstdlib>

namespace devshare {

// The name of the kind: string literals end in NUL, so the view's start is a C string.
const char* BadResult::what() const noexcept { return name_of(error_.kind()).data(); }

namespace detail {

void throw_bad_result(const Error& error) {
#if defined(__cpp_exceptions)
  throw BadResult(error);
#else
  (void)error;
  std::abort();
#endif
}

}  // namespace detail
}  // namespace devshare
