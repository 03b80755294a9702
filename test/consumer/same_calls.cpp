// SPDX-License-Identifier: Apache-2.0
// Each entry of our list against the function of that name in C: their parameters travel the same way, and the headers
// for programs in C have them all. Without the vendor's C++ overloads, beside which the type of a function cannot be asked
// for.
#include <acl/acl.h>

#include <devshare/acl/table.hpp>

#include <type_traits>

namespace {

// The same type; an enum beside the int it is passed as; a structure beside its twin; pointers to such.
template <class Ours, class Theirs>
constexpr bool alike = std::is_same_v<Ours, Theirs> ||
                       (std::is_same_v<Ours, int> && std::is_enum_v<Theirs> && sizeof(int) == sizeof(Theirs));
template <class Ours, class Theirs>
  requires(!std::is_same_v<Ours, Theirs> && std::is_class_v<Ours> && std::is_class_v<Theirs>)
constexpr bool alike<Ours, Theirs> = sizeof(Ours) == sizeof(Theirs) && alignof(Ours) == alignof(Theirs) &&
                                     std::is_trivially_copyable_v<Ours> && std::is_trivially_copyable_v<Theirs>;
template <class Ours, class Theirs>
  requires(!std::is_same_v<Ours, Theirs> && !std::is_void_v<Ours> && !std::is_void_v<Theirs>)
constexpr bool alike<Ours*, Theirs*> = alike<Ours, Theirs>;

template <class Ours, class Theirs>
constexpr bool same_call = false;
template <class R, class... A, class S, class... B>
  requires(sizeof...(A) == sizeof...(B))
constexpr bool same_call<R (*)(A...), S (*)(B...)> = alike<R, S> && (alike<A, B> && ...);

#define DEVSHARE_SAME_CALL(name, result, parameters, need, since) \
  static_assert(same_call<decltype(devshare::acl::Table::name), decltype(&::name)>);
DEVSHARE_ACL_ENTRIES(DEVSHARE_SAME_CALL)
#undef DEVSHARE_SAME_CALL

}  // namespace

int main() {}
