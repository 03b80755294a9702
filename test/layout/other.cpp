// SPDX-License-Identifier: Apache-2.0
// The library as a program finds it that was compiled with the headers of another one: same name, another layout.
#include <devshare/detail/attributes.hpp>

#include <cstdint>

namespace devshare::detail {

template <std::uint64_t Number>
struct DEVSHARE_API RuntimeLayout {
  static const char in_library;
};
template <>
const char RuntimeLayout<1>::in_library = 1;

}  // namespace devshare::detail
