// SPDX-License-Identifier: Apache-2.0
// Keeps a program from running with a library of another layout.
//
// Inline code of the headers reads the runtime's record and calls through its table. A program that was compiled with
// another list of entries than its library would call the wrong function, with nobody to notice. So whatever includes
// the headers asks for a symbol that has the layout in its name: the loader refuses to start it with a library that has
// another. The number of the shared object (libdevshare.so.0.1) says the same of releases; this holds between them.
#pragma once

#include <devshare/detail/runtime_record.hpp>

#include <cstddef>
#include <cstdint>

namespace devshare::detail {

consteval std::uint64_t number_of_layout() {
  std::uint64_t hash = 0xcbf29ce484222325U;  // FNV-1a
  const auto mix = [&hash](std::uint64_t value) { hash = (hash ^ value) * 0x100000001b3U; };
#define DEVSHARE_ACL_WORDS(name, result, parameters, need, since) #result #name #parameters
  for (const char letter : DEVSHARE_ACL_ENTRIES(DEVSHARE_ACL_WORDS)) mix(static_cast<unsigned char>(letter));
#undef DEVSHARE_ACL_WORDS
  mix(sizeof(RuntimeRecord));
  mix(sizeof(RuntimeExtras));
  mix(offsetof(RuntimeRecord, extras));
  mix(offsetof(RuntimeRecord, session_word));
  mix(sizeof(Session));
  mix(sizeof(Error));
  mix(sizeof(Cause));
  return hash;
}

template <std::uint64_t Number>
struct DEVSHARE_API RuntimeLayout {
  static const char in_library;
};
template <>
const char RuntimeLayout<number_of_layout()>::in_library;  // there, for its own layout and no other

[[gnu::used]] inline const char* const layout_of_headers = &RuntimeLayout<number_of_layout()>::in_library;

}  // namespace devshare::detail
